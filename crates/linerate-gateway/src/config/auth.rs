//! `[auth]`: who may connect, publish and administer.

use std::time::Duration;

use serde::Deserialize;

use super::{check::Check, secret::Secret, unit};

/// Who may connect, publish and administer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuthOptions {
    /// True if clients may connect without a token. If no key is configured either, every client
    /// may do everything.
    pub anonymous: bool,
    /// The key that requests to the server API must present.
    pub api_key: Option<Secret>,
    /// The key that requests to `/admin` must present.
    pub admin_key: Option<Secret>,
    /// Maximum number of token revocations kept.
    pub revocations_max: usize,
    /// The key that a client of the log page must present; the admin key is accepted as well.
    /// Setting it does not close an open server, but the log page then asks for it.
    pub logs_key: Option<Secret>,
    /// Which tokens are accepted.
    pub token: TokenOptions,
}

/// Which tokens are accepted. The key determines the algorithm, regardless of what a token claims.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenOptions {
    /// Secret for HS256, HS384 and HS512.
    pub hmac_secret_key: Option<Secret>,
    /// Public key in PEM, for RS256, RS384 and RS512.
    pub rsa_public_key: Option<Secret>,
    /// Public key in PEM, for ES256 or ES384, depending on its curve.
    pub ecdsa_public_key: Option<Secret>,
    /// Public key in PEM, for EdDSA.
    pub ed25519_public_key: Option<Secret>,
    /// URL of a JSON Web Key Set (JWKS).
    pub jwks_url: Option<String>,
    /// Value that the `aud` claim of a token must contain.
    pub audience: Option<String>,
    /// Value that the `iss` claim of a token must have.
    pub issuer: Option<String>,
    /// Tolerated clock difference.
    #[serde(rename = "leeway_s", with = "unit::seconds")]
    pub leeway: Duration,
    /// Maximum size of a token, in bytes.
    pub bytes_max: usize,
}

impl AuthOptions {
    /// Returns whether any key or token is required, from clients or from applications.
    pub(crate) fn has_keys(&self) -> bool {
        self.api_key.is_some() || self.admin_key.is_some() || self.token.has_keys()
    }

    pub(super) fn check(&self, check: &mut Check) {
        for (key, secret) in [
            ("api_key", &self.api_key),
            ("admin_key", &self.admin_key),
            ("logs_key", &self.logs_key),
        ] {
            if let Some(secret) = secret {
                check_length(check, key, secret, 16);
            }
        }
        check.range("revocations_max", self.revocations_max, 1..=1_000_000);
        check.section("token", |check| self.token.check(check));
    }
}

impl TokenOptions {
    /// Returns whether a key is configured, without which no token can be valid.
    pub(crate) fn has_keys(&self) -> bool {
        self.jwks_url.is_some() || self.keys().into_iter().any(|(_, key)| key.is_some())
    }

    fn check(&self, check: &mut Check) {
        if let Some(secret) = &self.hmac_secret_key {
            // A shorter key could be found by brute force. RFC 7518 §3.2 requires a key at least as
            // long as the hash output.
            check_length(check, "hmac_secret_key", secret, 16);
        }
        if let Some(url) = &self.jwks_url
            && !url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            check.refuse("jwks_url", url, "must be an https:// or http:// URL");
        }
        check.range("leeway_s", self.leeway.as_secs(), 0..=600);
        check.range("bytes_max", self.bytes_max, 256..=64 << 10);
    }

    /// Returns the keys with their names.
    fn keys(&self) -> [(&'static str, &Option<Secret>); 4] {
        [
            ("hmac_secret_key", &self.hmac_secret_key),
            ("rsa_public_key", &self.rsa_public_key),
            ("ecdsa_public_key", &self.ecdsa_public_key),
            ("ed25519_public_key", &self.ed25519_public_key),
        ]
    }
}

/// Reports a secret that is short enough to be found by brute force.
fn check_length(check: &mut Check, key: &str, secret: &Secret, bytes_min: usize) {
    let bytes = secret.expose().trim().len();
    if bytes < bytes_min && !secret.is_file() {
        let because = format!("has {bytes} bytes; at least {bytes_min} are required");
        check.refuse(key, secret, &because);
    }
}
