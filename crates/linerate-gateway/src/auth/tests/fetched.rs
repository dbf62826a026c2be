//! Tests of fetched keys.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{Router, extract::State, http::StatusCode, routing::get};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind, Header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{RSA_PUBLIC, SECRET, connect, key, signing::encode};
use crate::{
    auth::{Authenticator, TokenError, rsa},
    config::{Config, Secret},
};

/// A server of keys that counts requests.
#[derive(Clone, Default)]
struct KeyServer {
    answer: Arc<Mutex<Option<String>>>,
    asked: Arc<AtomicUsize>,
}

impl KeyServer {
    async fn start(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answer = |State(server): State<Self>| async move {
            server.asked.fetch_add(1, Ordering::SeqCst);
            let answer = server.answer.lock().clone();
            answer.ok_or(StatusCode::INTERNAL_SERVER_ERROR)
        };
        let app = Router::new()
            .route("/keys", get(answer))
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    fn answers(&self, answer: Option<String>) {
        *self.answer.lock() = answer;
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Returns an authenticator that only uses keys fetched from `address`.
fn fetching(address: SocketAddr) -> Authenticator {
    let mut options = Config::default().auth;
    options.token.jwks_url = Some(format!("http://{address}/keys"));
    Authenticator::new(&options).unwrap()
}

/// Returns the public key of `p256.pem` or `ed25519.pem` as a JWK, extracted from its DER encoding.
fn jwk(algorithm: Algorithm, id: &str) -> Value {
    let pem = match algorithm {
        Algorithm::ES256 => super::P256_PUBLIC,
        _ => super::ED25519_PUBLIC,
    };
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    let der = base64::engine::general_purpose::STANDARD
        .decode(base64)
        .unwrap();
    let tail = |bytes: usize| &der[der.len() - bytes..];
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    match algorithm {
        Algorithm::ES256 => json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": id,
            "x": encode(&tail(64)[..32]), "y": encode(tail(32)),
        }),
        _ => json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(tail(32))}),
    }
}

fn set(keys: &[Value]) -> Option<String> {
    Some(json!({ "keys": keys }).to_string())
}

fn token(algorithm: Algorithm, id: Option<&str>) -> String {
    let mut header = Header::new(algorithm);
    header.kid = id.map(Into::into);
    encode(&header, &json!({"sub": "ann"}), &key(algorithm))
}

/// Advances the clock without waiting.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_key_is_found_by_its_name_and_fetched_once() {
    let server = KeyServer::default();
    let secp256k1 = json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA", "kid": "x"});
    server.answers(set(&[
        secp256k1,
        jwk(Algorithm::EdDSA, "ed"),
        jwk(Algorithm::ES256, "ec"),
    ]));
    let authenticator = fetching(server.start().await);
    for _ in 0..3 {
        for (algorithm, id) in [
            (Algorithm::ES256, Some("ec")),
            (Algorithm::EdDSA, Some("ed")),
            (Algorithm::EdDSA, None),
        ] {
            let taken = connect(&authenticator, &token(algorithm, id)).await;
            assert_eq!(taken.unwrap().user, "ann");
        }
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_name_of_a_key_with_another_algorithm_is_refused() {
    let server = KeyServer::default();
    server.answers(set(&[jwk(Algorithm::EdDSA, "ed")]));
    let authenticator = fetching(server.start().await);
    let refused = connect(&authenticator, &token(Algorithm::ES256, Some("ed"))).await;
    assert_eq!(refused.unwrap_err(), TokenError::NoKey);
}

#[tokio::test]
async fn a_flood_of_unknown_names_does_not_become_a_flood_of_requests() {
    let server = KeyServer::default();
    server.answers(set(&[jwk(Algorithm::EdDSA, "ed")]));
    let authenticator = Arc::new(fetching(server.start().await));
    let mut attempts = tokio::task::JoinSet::new();
    for i in 0..200 {
        let authenticator = authenticator.clone();
        attempts.spawn(async move {
            let token = token(Algorithm::EdDSA, Some(&format!("unknown-{i}")));
            connect(&authenticator, &token).await
        });
    }
    for refused in attempts.join_all().await {
        assert_eq!(refused.unwrap_err(), TokenError::NoKey);
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_new_key_is_fetched_when_a_token_names_it_but_not_more_often_than_allowed() {
    let server = KeyServer::default();
    server.answers(set(&[jwk(Algorithm::EdDSA, "old")]));
    let authenticator = fetching(server.start().await);
    connect(&authenticator, &token(Algorithm::EdDSA, Some("old")))
        .await
        .unwrap();
    server.answers(set(&[jwk(Algorithm::EdDSA, "new")]));
    let new = token(Algorithm::EdDSA, Some("new"));
    assert_eq!(
        connect(&authenticator, &new).await.unwrap_err(),
        TokenError::NoKey
    );
    assert_eq!(server.asked(), 1);
    pass(Duration::from_secs(10)).await;
    connect(&authenticator, &new).await.unwrap();
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn keys_stay_in_use_while_their_server_fails() {
    let server = KeyServer::default();
    server.answers(set(&[jwk(Algorithm::EdDSA, "ed")]));
    let authenticator = fetching(server.start().await);
    let token = token(Algorithm::EdDSA, Some("ed"));
    connect(&authenticator, &token).await.unwrap();
    let jwks = authenticator.jwks.clone().unwrap();
    for answer in [
        None,
        Some("no JSON".into()),
        set(&[]),
        Some("x".repeat(300 << 10)),
    ] {
        server.answers(answer);
        pass(Duration::from_secs(601)).await;
        assert!(jwks.refresh().await.is_some());
        connect(&authenticator, &token).await.unwrap();
    }
    assert_eq!(server.asked(), 5);
}

#[tokio::test]
async fn without_any_keys_the_refusal_is_temporary() {
    let server = KeyServer::default();
    let authenticator = fetching(server.start().await);
    let token = token(Algorithm::EdDSA, Some("ed"));
    let error = connect(&authenticator, &token).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
    server.answers(set(&[jwk(Algorithm::EdDSA, "ed")]));
    pass(Duration::from_secs(10)).await;
    connect(&authenticator, &token).await.unwrap();
}

#[tokio::test]
async fn a_shared_secret_in_the_set_is_not_used() {
    let server = KeyServer::default();
    let secret = URL_SAFE_NO_PAD.encode(SECRET);
    let oct = json!({"kty": "oct", "k": secret, "alg": "HS256", "kid": "oct"});
    server.answers(set(&[oct, jwk(Algorithm::EdDSA, "ed")]));
    let authenticator = fetching(server.start().await);
    let refused = connect(&authenticator, &token(Algorithm::HS256, Some("oct"))).await;
    assert_eq!(refused.unwrap_err(), TokenError::NoKey);
}

#[tokio::test]
async fn keys_are_kept_when_the_configuration_is_loaded_again() {
    let server = KeyServer::default();
    server.answers(set(&[jwk(Algorithm::EdDSA, "ed")]));
    let mut options = Config::default().auth;
    options.token.jwks_url = Some(format!("http://{}/keys", server.start().await));
    let authenticator = Authenticator::new(&options).unwrap();
    let token = token(Algorithm::EdDSA, Some("ed"));
    connect(&authenticator, &token).await.unwrap();
    options.api_key = Some(Secret::new("0123456789abcdef"));
    let renewed = Authenticator::renew(&options, &authenticator).unwrap();
    connect(&renewed, &token).await.unwrap();
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn an_rsa_key_of_a_set_is_taken_unless_it_is_too_short() {
    let pem = DecodingKey::from_rsa_pem(RSA_PUBLIC.as_bytes()).unwrap();
    let key = rsa::usable(&pem).unwrap();
    let DecodingKeyKind::RsaModulusExponent { n, e } = key.kind() else {
        panic!("a usable key has components");
    };
    let jwk = |n: &[u8]| {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"kty": "RSA", "kid": "rsa", "n": encode(n), "e": encode(e)})
    };
    // Some issuers keep the leading zero that DER puts before the modulus.
    let padded = [&[0][..], n].concat();
    for (n, is_taken) in [(&n[..], true), (&padded, true), (&n[..255], false)] {
        let server = KeyServer::default();
        server.answers(set(&[jwk(n), self::jwk(Algorithm::EdDSA, "ed")]));
        let authenticator = fetching(server.start().await);
        let answer = connect(&authenticator, &token(Algorithm::RS256, Some("rsa"))).await;
        assert_eq!(answer.is_ok(), is_taken, "{} bytes", n.len());
    }
}
