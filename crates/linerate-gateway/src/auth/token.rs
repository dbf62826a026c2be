//! Creates tokens for tests and experiments.

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Map, Value, json};

use crate::config::TokenOptions;

/// Creates tokens that are signed with the configured secret.
#[derive(Clone, Debug)]
pub struct TokenMaker {
    secret: String,
    audience: Option<String>,
    issuer: Option<String>,
}

/// Why tokens cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenMakerError {
    /// The file with the secret cannot be read.
    #[error("auth.token.hmac_secret_key: {0}")]
    File(#[from] std::io::Error),
    /// No secret is configured. With public keys only, tokens can be created only by the owner of
    /// the private key.
    #[error("auth.token.hmac_secret_key is not configured; it is required to sign tokens")]
    NoSecret,
}

impl TokenMaker {
    /// Reads the secret, and the audience and issuer that tokens must claim.
    ///
    /// # Errors
    /// Fails if no secret is configured, or if it cannot be read.
    pub fn new(options: &TokenOptions) -> Result<Self, TokenMakerError> {
        let secret = options.hmac_secret_key.as_ref();
        Ok(Self {
            secret: secret.ok_or(TokenMakerError::NoSecret)?.read()?,
            audience: options.audience.clone(),
            issuer: options.issuer.clone(),
        })
    }

    /// Creates a token for a connection of `user` that the server subscribes to `channels`.
    pub(crate) fn make_subscribed(
        &self,
        user: &str,
        channels: &[&str],
        expire_in: Duration,
    ) -> String {
        let mut claims = self.claims(user, Some(expire_in));
        claims.insert("channels".into(), json!(channels));
        self.sign(&Value::Object(claims))
    }

    /// Creates a token for a connection of `user`, or for a subscription of that user if `channel`
    /// is given.
    ///
    /// Others can see `info`. Without `expire_in` the token never expires.
    pub fn make(
        &self,
        user: &str,
        channel: Option<&str>,
        info: Option<Value>,
        expire_in: Option<Duration>,
    ) -> String {
        let mut claims = self.claims(user, expire_in);
        let optional = [("channel", channel.map(Value::from)), ("info", info)];
        claims.extend(present(optional));
        self.sign(&Value::Object(claims))
    }

    /// Returns the claims that all tokens of `user` have.
    fn claims(&self, user: &str, expire_in: Option<Duration>) -> Map<String, Value> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO);
        let always = [
            ("sub", Some(json!(user))),
            ("iat", Some(json!(now.as_secs()))),
            ("exp", expire_in.map(|time| json!((now + time).as_secs()))),
            ("aud", self.audience.clone().map(Value::from)),
            ("iss", self.issuer.clone().map(Value::from)),
        ];
        present(always).collect()
    }

    /// Returns the claims as a compact token (RFC 7515 §3.1), signed with HS256.
    fn sign(&self, claims: &Value) -> String {
        let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"HS256"}"#);
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        let message = format!("{header}.{payload}");
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
        format!("{message}.{signature}")
    }
}

/// Returns the claims that have a value.
fn present<const N: usize>(
    claims: [(&str, Option<Value>); N],
) -> impl Iterator<Item = (String, Value)> {
    let claims = claims.into_iter();
    claims.filter_map(|(name, value)| Some((name.to_owned(), value?)))
}
