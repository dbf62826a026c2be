//! Tests of tokens, grouped by topic.

mod attacks;
mod claims;
mod fetched;
mod origins;
mod signing;

use std::time::{Duration, SystemTime};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use linerate_hub::ChannelName;
use serde_json::{Value, json};

use self::signing::encode;
use super::{Authenticator, ConnectionClaims, Subscriber, SubscriptionClaims, TokenError};
use crate::config::{AuthOptions, Config, Secret};

pub(super) const SECRET: &str = "a secret of tests only";
/// The current time in the tests, in seconds since 1970.
pub(super) const NOW: u64 = 1_800_000_000;

pub(super) const RSA: &str = include_str!("tests/keys/rsa.pem");
pub(super) const RSA_PUBLIC: &str = include_str!("tests/keys/rsa.pub.pem");
pub(super) const P256: &str = include_str!("tests/keys/p256.pem");
pub(super) const P256_PUBLIC: &str = include_str!("tests/keys/p256.pub.pem");
pub(super) const P384: &str = include_str!("tests/keys/p384.pem");
pub(super) const P384_PUBLIC: &str = include_str!("tests/keys/p384.pub.pem");
pub(super) const P521_PUBLIC: &str = include_str!("tests/keys/p521.pub.pem");
pub(super) const ED25519: &str = include_str!("tests/keys/ed25519.pem");
pub(super) const ED25519_PUBLIC: &str = include_str!("tests/keys/ed25519.pub.pem");

/// Options with a key of each kind, P-256 for ECDSA.
pub(super) fn options() -> AuthOptions {
    let mut options = Config::default().auth;
    options.token.hmac_secret_key = Some(Secret::new(SECRET));
    options.token.rsa_public_key = Some(Secret::new(RSA_PUBLIC));
    options.token.ecdsa_public_key = Some(Secret::new(P256_PUBLIC));
    options.token.ed25519_public_key = Some(Secret::new(ED25519_PUBLIC));
    options
}

pub(super) fn authenticator() -> Authenticator {
    Authenticator::new(&options()).unwrap()
}

/// Returns the private key for an algorithm.
pub(super) fn key(algorithm: Algorithm) -> EncodingKey {
    match algorithm {
        Algorithm::HS256 | Algorithm::HS384 | Algorithm::HS512 => {
            EncodingKey::from_secret(SECRET.as_bytes())
        }
        Algorithm::ES256 => EncodingKey::from_ec_pem(P256.as_bytes()).unwrap(),
        Algorithm::ES384 => EncodingKey::from_ec_pem(P384.as_bytes()).unwrap(),
        Algorithm::EdDSA => EncodingKey::from_ed_pem(ED25519.as_bytes()).unwrap(),
        _ => EncodingKey::from_rsa_pem(RSA.as_bytes()).unwrap(),
    }
}

pub(super) fn token(algorithm: Algorithm, claims: &Value) -> String {
    encode(&Header::new(algorithm), claims, &key(algorithm))
}

pub(super) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(super) async fn connect(
    authenticator: &Authenticator,
    token: &str,
) -> Result<ConnectionClaims, TokenError> {
    authenticator.connection(token, at(NOW)).await
}

/// Presents a token for the channel `news` as the user `ann` with the connection `c1`.
pub(super) async fn subscribe(claims: &Value) -> Result<SubscriptionClaims, TokenError> {
    let channel = ChannelName::new("news").unwrap();
    let subscriber = Subscriber {
        user: "ann",
        client: "c1",
        channel: &channel,
    };
    let token = token(Algorithm::HS256, claims);
    let authenticator = authenticator();
    authenticator
        .subscription(&token, subscriber, at(NOW))
        .await
}

#[tokio::test]
async fn each_algorithm_is_taken_with_its_key() {
    let claims = json!({"sub": "ann"});
    for algorithm in [
        Algorithm::HS256,
        Algorithm::HS384,
        Algorithm::HS512,
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::ES256,
        Algorithm::EdDSA,
    ] {
        let token = token(algorithm, &claims);
        let taken = connect(&authenticator(), &token).await;
        assert_eq!(taken.unwrap().user, "ann", "{algorithm:?}");
    }
    let mut options = options();
    options.token.ecdsa_public_key = Some(Secret::new(P384_PUBLIC));
    let authenticator = Authenticator::new(&options).unwrap();
    let taken = connect(&authenticator, &token(Algorithm::ES384, &claims)).await;
    assert_eq!(taken.unwrap().user, "ann");
}

#[test]
fn keys_that_are_none_are_refused_by_name() {
    for (pem, kind) in [
        ("no key at all", "none"),
        (RSA_PUBLIC, "of another kind"),
        (P521_PUBLIC, "on another curve"),
    ] {
        let mut options = Config::default().auth;
        options.token.ecdsa_public_key = Some(Secret::new(pem));
        let error = Authenticator::new(&options).unwrap_err().to_string();
        assert!(
            error.starts_with("auth.token.ecdsa_public_key: "),
            "{kind}: {error}"
        );
        assert!(!error.contains("no key at all"), "{error}");
    }
    let options = AuthOptions {
        api_key: Some(Secret::new("file:/nowhere/key")),
        ..Config::default().auth
    };
    let error = Authenticator::new(&options).unwrap_err().to_string();
    assert!(error.starts_with("auth.api_key: "), "{error}");
}

#[test]
fn only_the_whole_key_of_the_api_is_taken() {
    let mut options = Config::default().auth;
    let none = Authenticator::new(&options).unwrap();
    assert!(!none.has_api_key() && !none.is_api_key(b"") && !none.is_admin_key(b""));
    options.api_key = Some(Secret::new("0123456789abcdef"));
    options.admin_key = Some(Secret::new("fedcba9876543210"));
    let authenticator = Authenticator::new(&options).unwrap();
    assert!(authenticator.is_api_key(b"0123456789abcdef"));
    assert!(authenticator.is_admin_key(b"fedcba9876543210"));
    for wrong in [
        &b""[..],
        b"0",
        b"0123456789abcde",
        b"0123456789abcdeg",
        b"0123456789abcdef0",
        b"fedcba9876543210",
        b"\xff\xfe",
    ] {
        assert!(!authenticator.is_api_key(wrong));
    }
    assert!(!format!("{authenticator:?}").contains("0123456789abcdef"));
}
