//! Signs tokens as issuers do, and verifies signatures made by other programs.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512,
    RSA_PSS_SHA256, RsaEncoding, RsaKeyPair,
};
use ring::{hmac, signature};
use serde_json::Value;

use super::super::keys::Keys;
use super::options;
use crate::auth::signature::is_valid;
use crate::config::Secret;

/// Returns the claims as a token that is signed with the algorithm in the header.
pub(super) fn encode(header: &Header, claims: &Value, key: &EncodingKey) -> String {
    let header_json = serde_json::to_string(header).unwrap();
    let header_part = URL_SAFE_NO_PAD.encode(header_json);
    let message = format!(
        "{header_part}.{}",
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let signature = sign(header.alg, key.as_bytes(), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn sign(algorithm: Algorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    let hmac = |algorithm| {
        hmac::sign(&hmac::Key::new(algorithm, key), message)
            .as_ref()
            .to_vec()
    };
    match algorithm {
        Algorithm::HS256 => hmac(hmac::HMAC_SHA256),
        Algorithm::HS384 => hmac(hmac::HMAC_SHA384),
        Algorithm::HS512 => hmac(hmac::HMAC_SHA512),
        Algorithm::RS256 => sign_rsa(&RSA_PKCS1_SHA256, key, message),
        Algorithm::RS384 => sign_rsa(&RSA_PKCS1_SHA384, key, message),
        Algorithm::RS512 => sign_rsa(&RSA_PKCS1_SHA512, key, message),
        Algorithm::PS256 => sign_rsa(&RSA_PSS_SHA256, key, message),
        Algorithm::ES256 => sign_ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, key, message),
        Algorithm::ES384 => sign_ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, key, message),
        Algorithm::EdDSA => {
            let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).unwrap();
            bytes(&pair.sign(message))
        }
        other => panic!("no test signs by {other:?}"),
    }
}

fn sign_rsa(encoding: &'static dyn RsaEncoding, key: &[u8], message: &[u8]) -> Vec<u8> {
    let pair = RsaKeyPair::from_der(key).unwrap();
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(encoding, &SystemRandom::new(), message, &mut signature)
        .unwrap();
    signature
}

fn sign_ecdsa(algorithm: &'static EcdsaSigningAlgorithm, key: &[u8], message: &[u8]) -> Vec<u8> {
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key, &random).unwrap();
    bytes(&pair.sign(&random, message).unwrap())
}

fn bytes(signature: &signature::Signature) -> Vec<u8> {
    signature.as_ref().to_vec()
}

fn decoded(base64: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(base64.trim()).unwrap()
}

/// Asserts that the key has signed this message, no other message, and with no other algorithm.
fn assert_valid(
    algorithm: Algorithm,
    key: &jsonwebtoken::DecodingKey,
    message: &[u8],
    base64: &str,
) {
    let signature = decoded(base64);
    assert!(
        is_valid(algorithm, key, message, &signature),
        "{algorithm:?}"
    );
    let changed = [message, b"."].concat();
    assert!(
        !is_valid(algorithm, key, &changed, &signature),
        "{algorithm:?}"
    );
    for at in 0..signature.len() {
        let mut flipped = signature.clone();
        flipped[at] ^= 1;
        assert!(
            !is_valid(algorithm, key, message, &flipped),
            "{algorithm:?}, byte {at}"
        );
        assert!(
            !is_valid(algorithm, key, message, &signature[..at]),
            "{algorithm:?}, cut at {at}"
        );
    }
    for other in [
        Algorithm::HS256,
        Algorithm::HS384,
        Algorithm::HS512,
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::EdDSA,
    ] {
        let is_its_own = other == algorithm;
        assert_eq!(
            is_valid(other, key, message, &signature),
            is_its_own,
            "{other:?}"
        );
    }
}

#[test]
fn signatures_of_the_standards_are_valid() {
    let payload = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
    // RFC 7515 §A.1.
    let secret = decoded(
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow",
    );
    assert_valid(
        Algorithm::HS256,
        &jsonwebtoken::DecodingKey::from_secret(&secret),
        format!("eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.{payload}").as_bytes(),
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    );
    // RFC 7515 §A.3.
    let key = jsonwebtoken::DecodingKey::from_ec_components(
        "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    );
    assert_valid(
        Algorithm::ES256,
        &key.unwrap(),
        format!("eyJhbGciOiJFUzI1NiJ9.{payload}").as_bytes(),
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
    );
    // RFC 8037 §A.4.
    let key = jsonwebtoken::DecodingKey::from_ed_components(
        "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    );
    assert_valid(
        Algorithm::EdDSA,
        &key.unwrap(),
        b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
    );
}

#[test]
fn signatures_that_openssl_made_are_valid() {
    let mut options = options();
    options.token.ecdsa_public_key = Some(Secret::new(super::P384_PUBLIC));
    let keys = Keys::read(&options.token).unwrap();
    for (algorithm, signature) in [
        (Algorithm::RS256, include_str!("keys/rs256.sig.txt")),
        (Algorithm::RS384, include_str!("keys/rs384.sig.txt")),
        (Algorithm::RS512, include_str!("keys/rs512.sig.txt")),
        (Algorithm::ES384, include_str!("keys/es384.sig.txt")),
    ] {
        let key = &keys.find(algorithm).unwrap().key;
        assert_valid(algorithm, key, b"message of openssl", signature);
    }
}
