//! Keys that verify signatures, each only for its own algorithms.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Header, dangerous::insecure_decode_claims, decode_header,
};
use serde::de::DeserializeOwned;

use super::{AuthSetupError, TokenError, rsa, signature};
use crate::config::{Secret, TokenOptions};

/// The algorithms of shared secrets.
pub(super) const HMAC: &[Algorithm] = &[Algorithm::HS256, Algorithm::HS384, Algorithm::HS512];
/// The algorithms of RSA keys.
pub(super) const RSA: &[Algorithm] = &[Algorithm::RS256, Algorithm::RS384, Algorithm::RS512];

/// Length in bytes of a point on the curve in the encoding of SEC 1: one byte and two coordinates
/// of 32 or 48 bytes.
const P256_BYTES: usize = 65;
const P384_BYTES: usize = 97;

/// A key and its algorithms.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) key: DecodingKey,
    pub(super) algorithms: Vec<Algorithm>,
}

/// The configured keys.
#[derive(Clone, Debug)]
pub(super) struct Keys(Vec<Key>);

impl Keys {
    pub(super) fn read(options: &TokenOptions) -> Result<Self, AuthSetupError> {
        type Parse = fn(&[u8]) -> Result<Key, String>;
        let sources: [(&'static str, &Option<Secret>, Parse); 4] = [
            ("auth.token.hmac_secret_key", &options.hmac_secret_key, hmac),
            (
                "auth.token.rsa_public_key",
                &options.rsa_public_key,
                rsa_pem,
            ),
            (
                "auth.token.ecdsa_public_key",
                &options.ecdsa_public_key,
                ecdsa,
            ),
            (
                "auth.token.ed25519_public_key",
                &options.ed25519_public_key,
                ed25519,
            ),
        ];
        let mut keys = Vec::new();
        for (name, secret, parse) in sources {
            if let Some(secret) = secret {
                let text = secret
                    .read()
                    .map_err(|source| AuthSetupError::File { name, source })?;
                let key = parse(text.as_bytes());
                keys.push(key.map_err(|reason| AuthSetupError::Key { name, reason })?);
            }
        }
        Ok(Self(keys))
    }

    /// Returns the key for an algorithm.
    pub(super) fn find(&self, algorithm: Algorithm) -> Option<&Key> {
        self.0
            .iter()
            .find(|key| key.algorithms.contains(&algorithm))
    }
}

impl Key {
    /// Verifies the signature and returns the claims. The caller must still check times and
    /// audience, against a clock that tests can set.
    pub(super) fn verify<T: DeserializeOwned>(&self, token: &str) -> Result<T, TokenError> {
        let algorithm = header(token)?.alg;
        if !self.algorithms.contains(&algorithm) {
            return Err(TokenError::NoKey);
        }
        let (message, signature) = token.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let signature = URL_SAFE_NO_PAD
            .decode(signature)
            .map_err(|_| TokenError::Malformed)?;
        if !signature::is_valid(algorithm, &self.key, message.as_bytes(), &signature) {
            return Err(TokenError::Signature);
        }
        // This is safe here, because the signature has been verified.
        insecure_decode_claims(token).map_err(|_| TokenError::Malformed)
    }
}

/// Returns the header of a token. It is not verified yet.
pub(super) fn header(token: &str) -> Result<Header, TokenError> {
    let header = decode_header(token).map_err(|_| TokenError::Malformed)?;
    // RFC 7515 §4.1.11: a recipient must reject a token with critical extensions that it does not
    // understand.
    match header.crit {
        Some(_) => Err(TokenError::Malformed),
        None => Ok(header),
    }
}

fn hmac(secret: &[u8]) -> Result<Key, String> {
    if secret.len() < 16 {
        let bytes = secret.len();
        return Err(format!("has {bytes} bytes; at least 16 are required"));
    }
    Ok(Key {
        key: DecodingKey::from_secret(secret),
        algorithms: HMAC.to_vec(),
    })
}

fn rsa_pem(pem: &[u8]) -> Result<Key, String> {
    let key = DecodingKey::from_rsa_pem(pem);
    let key = key.map_err(|error| format!("not an RSA public key in PEM: {error}"))?;
    Ok(Key {
        key: rsa::usable(&key)?,
        algorithms: RSA.to_vec(),
    })
}

fn ecdsa(pem: &[u8]) -> Result<Key, String> {
    let key = DecodingKey::from_ec_pem(pem);
    let key = key.map_err(|error| format!("not an ECDSA public key in PEM: {error}"))?;
    let algorithm = match key.try_get_as_bytes().map(<[u8]>::len) {
        Ok(P256_BYTES) => Algorithm::ES256,
        Ok(P384_BYTES) => Algorithm::ES384,
        _ => return Err("curve is neither P-256 nor P-384".into()),
    };
    Ok(Key {
        key,
        algorithms: vec![algorithm],
    })
}

fn ed25519(pem: &[u8]) -> Result<Key, String> {
    let key = DecodingKey::from_ed_pem(pem);
    Ok(Key {
        key: key.map_err(|error| format!("not an Ed25519 public key in PEM: {error}"))?,
        algorithms: vec![Algorithm::EdDSA],
    })
}
