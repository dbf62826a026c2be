//! Makes tokens, for tests and for trying out.

use std::time::{Duration, SystemTime};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::hmac;
use serde_json::{Map, Value, json};

use crate::config::TokenOptions;

/// Makes tokens that are signed with the configured secret.
#[derive(Clone, Debug)]
pub struct TokenMaker {
    secret: String,
    audience: Option<String>,
    issuer: Option<String>,
}

/// Why no token can be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenMakerError {
    /// The secret is in a file that can't be read.
    #[error("auth.token.hmac_secret_key: {0}")]
    File(#[from] std::io::Error),
    /// There is no secret: with public keys only, nobody but their owner can make tokens.
    #[error("auth.token.hmac_secret_key is not configured; tokens are made with it")]
    NoSecret,
}

impl TokenMaker {
    /// Takes the secret, and what tokens must claim besides.
    ///
    /// # Errors
    /// There is no secret, or it can't be read.
    pub fn new(options: &TokenOptions) -> Result<Self, TokenMakerError> {
        let secret = options.hmac_secret_key.as_ref();
        Ok(Self {
            secret: secret.ok_or(TokenMakerError::NoSecret)?.read()?,
            audience: options.audience.clone(),
            issuer: options.issuer.clone(),
        })
    }

    /// Makes a token for a connection of `user`, or for a subscription of theirs if there is a channel.
    ///
    /// `info` is what others are told of them. Without `expire_in` it is valid forever.
    pub fn make(
        &self,
        user: &str,
        channel: Option<&str>,
        info: Option<Value>,
        expire_in: Option<Duration>,
    ) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or(Duration::ZERO);
        let mut claims = Map::new();
        claims.insert("sub".into(), json!(user));
        claims.insert("iat".into(), json!(now.as_secs()));
        let optional = [
            ("channel", channel.map(Value::from)),
            ("info", info),
            ("exp", expire_in.map(|time| json!((now + time).as_secs()))),
            ("aud", self.audience.clone().map(Value::from)),
            ("iss", self.issuer.clone().map(Value::from)),
        ];
        for (name, value) in optional {
            claims.extend(value.map(|value| (name.to_owned(), value)));
        }
        self.sign(&Value::Object(claims))
    }

    /// Returns the claims as a token (RFC 7515 §3.1) with the signature of HS256.
    fn sign(&self, claims: &Value) -> String {
        let header = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"HS256"}"#);
        let payload = URL_SAFE_NO_PAD.encode(claims.to_string());
        let message = format!("{header}.{payload}");
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, message.as_bytes()));
        format!("{message}.{signature}")
    }
}
