//! Tests of tokens that must be rejected.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{
    NOW, P384, RSA_PUBLIC, SECRET, authenticator, connect, encode, key, options, subscribe, token,
};
use crate::auth::{Authenticator, TokenError};

fn part(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

async fn refusal(token: &str) -> TokenError {
    connect(&authenticator(), token).await.unwrap_err()
}

#[tokio::test]
async fn the_algorithm_none_is_refused_however_it_is_written() {
    let payload = part(&json!({"sub": "ann"}));
    for none in ["none", "None", "NONE", "nOnE", ""] {
        let header = part(&json!({"alg": none, "typ": "JWT"}));
        for signature in ["", "AAAA"] {
            let token = format!("{header}.{payload}.{signature}");
            assert_eq!(refusal(&token).await, TokenError::Malformed, "{none}");
        }
    }
}

#[tokio::test]
async fn a_public_key_is_not_taken_for_a_shared_secret() {
    // The attacker knows the public key, uses it as a secret, and claims HS256.
    for secret in [RSA_PUBLIC, RSA_PUBLIC.trim()] {
        let key = EncodingKey::from_secret(secret.as_bytes());
        for algorithm in [Algorithm::HS256, Algorithm::HS384, Algorithm::HS512] {
            let forged = encode(&Header::new(algorithm), &json!({"sub": "ann"}), &key);
            assert_eq!(refusal(&forged).await, TokenError::Signature);
            let mut options = options();
            options.token.hmac_secret_key = None;
            let without_secret = Authenticator::new(&options).unwrap();
            let refused = connect(&without_secret, &forged).await;
            assert_eq!(refused.unwrap_err(), TokenError::NoKey);
        }
    }
}

#[tokio::test]
async fn an_algorithm_without_its_key_is_refused() {
    // The configured ECDSA key is on P-256.
    let token = encode(
        &Header::new(Algorithm::ES384),
        &json!({"sub": "ann"}),
        &EncodingKey::from_ec_pem(P384.as_bytes()).unwrap(),
    );
    assert_eq!(refusal(&token).await, TokenError::NoKey);
    let pss = super::token(Algorithm::PS256, &json!({"sub": "ann"}));
    assert_eq!(refusal(&pss).await, TokenError::NoKey);
}

#[tokio::test]
async fn a_token_that_was_changed_is_refused() {
    for algorithm in [
        Algorithm::HS256,
        Algorithm::RS256,
        Algorithm::ES256,
        Algorithm::EdDSA,
    ] {
        let token = token(algorithm, &json!({"sub": "ann"}));
        let parts: Vec<&str> = token.split('.').collect();
        let payload = part(&json!({"sub": "root"}));
        let header = part(&json!({"alg": parts_alg(algorithm), "kid": "../../dev/null"}));
        for changed in [
            format!("{}.{payload}.{}", parts[0], parts[2]),
            format!("{header}.{}.{}", parts[1], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
        ] {
            assert_eq!(
                refusal(&changed).await,
                TokenError::Signature,
                "{algorithm:?}"
            );
        }
    }
}

fn parts_alg(algorithm: Algorithm) -> Value {
    serde_json::to_value(algorithm).unwrap()
}

#[tokio::test]
async fn a_token_cut_off_anywhere_is_refused() {
    let token = token(Algorithm::HS256, &json!({"sub": "ann"}));
    for end in 0..token.len() {
        assert!(
            connect(&authenticator(), &token[..end]).await.is_err(),
            "{end}"
        );
    }
}

#[tokio::test]
async fn what_is_no_token_is_refused() {
    let header = part(&json!({"alg": "HS256"}));
    for text in [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "🦀.🦀.🦀",
        "\0\0\0",
        &format!("{header}.e30"),
        &format!("{header}.{header}.{header}.{header}.{header}"),
        &format!("{}.e30.AAAA", URL_SAFE_NO_PAD.encode("[".repeat(4_000))),
        &format!("{}.e30.AAAA", URL_SAFE_NO_PAD.encode([0xff, 0xfe])),
        &format!("{}.e30.AAAA", part(&json!({"alg": 7}))),
        &format!("{}.e30.AAAA", part(&json!([]))),
    ] {
        assert_eq!(refusal(text).await, TokenError::Malformed, "{text}");
    }
}

#[tokio::test]
async fn claims_of_a_wrong_type_are_refused() {
    for claims in [
        json!([]),
        json!("ann"),
        json!({"sub": 7}),
        json!({"sub": "ann", "exp": "tomorrow"}),
        json!({"sub": "ann", "exp": 1e300}),
        json!({"sub": "ann", "channels": "news"}),
        json!({"sub": "ann", "channels": ["a b"]}),
        json!({"sub": "ann", "channels": vec!["a"; 1_001]}),
        json!({"sub": "ann", "b64info": "?"}),
    ] {
        let token = token(Algorithm::HS256, &claims);
        assert_eq!(refusal(&token).await, TokenError::Malformed, "{claims}");
    }
}

#[tokio::test]
async fn a_critical_header_that_nobody_understands_is_refused() {
    let mut header = Header::new(Algorithm::HS256);
    header.crit = Some(vec!["b64".into()]);
    let token = encode(&header, &json!({"sub": "ann"}), &key(Algorithm::HS256));
    assert_eq!(refusal(&token).await, TokenError::Malformed);
}

#[tokio::test]
async fn keys_that_come_with_the_token_are_not_used() {
    let mut header = Header::new(Algorithm::HS256);
    header.jku = Some("http://127.0.0.1:1/evil.json".into());
    header.x5u = header.jku.clone();
    let own = EncodingKey::from_secret(b"the attacker's own key");
    let token = encode(&header, &json!({"sub": "ann"}), &own);
    assert_eq!(refusal(&token).await, TokenError::Signature);
}

#[tokio::test]
async fn a_token_is_taken_up_to_its_end_and_from_its_beginning_give_or_take_the_leeway() {
    for (claims, expected) in [
        (json!({"exp": NOW + 1}), Ok(())),
        (json!({"exp": NOW - 4}), Ok(())),
        (json!({"exp": NOW as f64 - 3.5}), Ok(())),
        (json!({"exp": NOW - 5}), Err(TokenError::Expired)),
        (json!({"exp": 0}), Err(TokenError::Expired)),
        (json!({"exp": -1}), Err(TokenError::Expired)),
        (json!({"nbf": NOW + 5}), Ok(())),
        (json!({"nbf": NOW + 6}), Err(TokenError::NotYet)),
        (json!({"iat": NOW + 6}), Err(TokenError::NotYet)),
        (json!({"nbf": NOW - 99, "iat": NOW - 99}), Ok(())),
    ] {
        let taken = connect(&authenticator(), &token(Algorithm::HS256, &claims)).await;
        assert_eq!(taken.map(|_| ()), expected, "{claims}");
    }
}

#[tokio::test]
async fn audience_and_issuer_are_those_that_are_configured() {
    let mut options = options();
    options.token.audience = Some("linerate".into());
    options.token.issuer = Some("https://example.com".into());
    let authenticator = Authenticator::new(&options).unwrap();
    let issuer = "https://example.com";
    for (claims, expected) in [
        (json!({"iss": issuer, "aud": "linerate"}), Ok(())),
        (json!({"iss": issuer, "aud": ["other", "linerate"]}), Ok(())),
        (
            json!({"iss": issuer, "aud": "other"}),
            Err(TokenError::Audience),
        ),
        (
            json!({"iss": issuer, "aud": ["linerate2"]}),
            Err(TokenError::Audience),
        ),
        (json!({"iss": issuer, "aud": []}), Err(TokenError::Audience)),
        (json!({"iss": issuer}), Err(TokenError::Audience)),
        (
            json!({"iss": "https://example.com/", "aud": "linerate"}),
            Err(TokenError::Issuer),
        ),
        (json!({"aud": "linerate"}), Err(TokenError::Issuer)),
    ] {
        let taken = connect(&authenticator, &token(Algorithm::HS256, &claims)).await;
        assert_eq!(taken.map(|_| ()), expected, "{claims}");
    }
}

#[tokio::test]
async fn a_token_larger_than_allowed_is_refused_unread() {
    let authenticator = authenticator();
    let huge = "a".repeat(options().token.bytes_max + 1);
    let error = connect(&authenticator, &huge).await.unwrap_err();
    assert_eq!(
        error,
        TokenError::TooLong {
            bytes: 8_193,
            bytes_max: 8_192
        }
    );
    assert!(error.to_string().contains("8193") && error.to_string().contains("8192"));
    let largest = connect(&authenticator, &huge[1..]).await.unwrap_err();
    assert_eq!(largest, TokenError::Malformed);
}

#[tokio::test]
async fn a_token_for_a_channel_opens_no_connection_and_the_other_way_round() {
    let for_channel = token(Algorithm::HS256, &json!({"sub": "ann", "channel": "news"}));
    assert_eq!(refusal(&for_channel).await, TokenError::Channel);
    let refused = subscribe(&json!({"sub": "ann"})).await;
    assert_eq!(refused.unwrap_err(), TokenError::Channel);
}

#[tokio::test]
async fn a_token_for_another_channel_user_or_connection_is_refused() {
    for (claims, error) in [
        (json!({"sub": "ann", "channel": "new"}), TokenError::Channel),
        (
            json!({"sub": "ann", "channel": "news2"}),
            TokenError::Channel,
        ),
        (json!({"sub": "bob", "channel": "news"}), TokenError::User),
        (json!({"channel": "news"}), TokenError::User),
        (
            json!({"channel": "news", "client": "c2"}),
            TokenError::Client,
        ),
        (
            json!({"sub": "ann", "channel": "news", "client": "c2"}),
            TokenError::Client,
        ),
        (
            json!({"sub": "bob", "channel": "news", "client": "c1"}),
            TokenError::User,
        ),
    ] {
        assert_eq!(subscribe(&claims).await.unwrap_err(), error, "{claims}");
    }
    for claims in [
        json!({"sub": "ann", "channel": "news"}),
        json!({"channel": "news", "client": "c1"}),
    ] {
        assert!(subscribe(&claims).await.is_ok(), "{claims}");
    }
}

#[tokio::test]
async fn no_error_repeats_what_the_token_says() {
    let token = format!("{SECRET}.{SECRET}.{SECRET}");
    assert!(!refusal(&token).await.to_string().contains(SECRET));
}
