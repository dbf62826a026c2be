//! Verifies signatures of tokens (RFC 7518 §3) with the same cryptography library as TLS.

use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::hmac;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// Returns whether `signature` is the signature of `message` by `key`. Always false for an
/// algorithm that is not supported.
pub(super) fn is_valid(
    algorithm: Algorithm,
    key: &DecodingKey,
    message: &[u8],
    signature: &[u8],
) -> bool {
    match key.kind() {
        DecodingKeyKind::RsaModulusExponent { n, e } => rsa(algorithm).is_some_and(|parameters| {
            let key = RsaPublicKeyComponents { n, e };
            key.verify(parameters, message, signature).is_ok()
        }),
        DecodingKeyKind::SecretOrDer(key) => {
            if let Some(algorithm) = shared(algorithm) {
                let key = hmac::Key::new(algorithm, key);
                return hmac::verify(&key, message, signature).is_ok();
            }
            curve(algorithm).is_some_and(|algorithm| {
                let key = UnparsedPublicKey::new(algorithm, key);
                key.verify(message, signature).is_ok()
            })
        }
    }
}

fn shared(algorithm: Algorithm) -> Option<hmac::Algorithm> {
    match algorithm {
        Algorithm::HS256 => Some(hmac::HMAC_SHA256),
        Algorithm::HS384 => Some(hmac::HMAC_SHA384),
        Algorithm::HS512 => Some(hmac::HMAC_SHA512),
        _ => None,
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        _ => None,
    }
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Some(&ED25519),
        _ => None,
    }
}
