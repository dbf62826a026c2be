//! `[auth]`: who may connect, publish and administer.

use std::time::Duration;

use serde::Deserialize;

use super::{check::Check, secret::Secret, unit};

/// Who may connect, publish and administer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct AuthOptions {
    /// Whether clients may connect without a token. Where no key is configured either, everything is allowed
    /// to everybody.
    pub anonymous: bool,
    /// What a request to the server API must show.
    pub api_key: Option<Secret>,
    /// What a request to `/admin` must show.
    pub admin_key: Option<Secret>,
    /// Revocations of tokens that are remembered.
    pub revocations_max: usize,
    /// What a client of the log page must show, unless it shows the admin key. It does not close an open server, but it is
    /// asked for there, too.
    pub logs_key: Option<Secret>,
    /// Whose tokens are taken.
    pub token: TokenOptions,
}

/// Whose tokens are taken. The algorithm is that of the key, whatever a token says.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TokenOptions {
    /// For HS256, HS384 and HS512.
    pub hmac_secret_key: Option<Secret>,
    /// PEM, for RS256, RS384 and RS512.
    pub rsa_public_key: Option<Secret>,
    /// PEM, for ES256 or ES384, as its curve says.
    pub ecdsa_public_key: Option<Secret>,
    /// PEM, for EdDSA.
    pub ed25519_public_key: Option<Secret>,
    /// Where a set of public keys is to be had.
    pub jwks_url: Option<String>,
    /// What `aud` of a token must name.
    pub audience: Option<String>,
    /// What `iss` of a token must be.
    pub issuer: Option<String>,
    /// How far clocks may differ.
    #[serde(rename = "leeway_s", with = "unit::seconds")]
    pub leeway: Duration,
    /// Bytes of a token.
    pub bytes_max: usize,
}

impl AuthOptions {
    /// Returns whether clients or applications are asked for a key or a token.
    pub fn has_keys(&self) -> bool {
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

impl Default for AuthOptions {
    fn default() -> Self {
        Self {
            anonymous: false,
            api_key: None,
            admin_key: None,
            logs_key: None,
            revocations_max: 10_000,
            token: TokenOptions::default(),
        }
    }
}

impl TokenOptions {
    /// Returns whether any token can be valid.
    pub fn has_keys(&self) -> bool {
        self.jwks_url.is_some() || self.keys().into_iter().any(|(_, key)| key.is_some())
    }

    fn check(&self, check: &mut Check) {
        if let Some(secret) = &self.hmac_secret_key {
            // A key shorter than this can be found by trying (RFC 7518 §3.2 asks for that of the hash).
            check_length(check, "hmac_secret_key", secret, 16);
        }
        if let Some(url) = &self.jwks_url
            && !url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        {
            check.refuse("jwks_url", url, "must be a URL of https:// or http://");
        }
        check.range("leeway_s", self.leeway.as_secs(), 0..=600);
        check.range("bytes_max", self.bytes_max, 256..=64 << 10);
    }

    /// Returns the keys under their names.
    fn keys(&self) -> [(&'static str, &Option<Secret>); 4] {
        [
            ("hmac_secret_key", &self.hmac_secret_key),
            ("rsa_public_key", &self.rsa_public_key),
            ("ecdsa_public_key", &self.ecdsa_public_key),
            ("ed25519_public_key", &self.ed25519_public_key),
        ]
    }
}

impl Default for TokenOptions {
    fn default() -> Self {
        Self {
            hmac_secret_key: None,
            rsa_public_key: None,
            ecdsa_public_key: None,
            ed25519_public_key: None,
            jwks_url: None,
            audience: None,
            issuer: None,
            leeway: Duration::from_secs(5),
            bytes_max: 8 << 10,
        }
    }
}

/// Refuses a secret that can be found by trying.
fn check_length(check: &mut Check, key: &str, secret: &Secret, bytes_min: usize) {
    let bytes = secret.expose().trim().len();
    if bytes < bytes_min && !secret.is_file() {
        let because = format!("has {bytes} bytes; at least {bytes_min} are required");
        check.refuse(key, secret, &because);
    }
}
