//! Where and how the batches of a webhook are sent.

use std::io;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use ring::hmac;

use crate::{
    config::{Secret, WebhookEvent, WebhookOptions},
    http_client::{HttpClient, HttpError, post_json},
};

/// The prefix of secrets of Standard Webhooks.
const PREFIX: &str = "whsec_";

/// The URL, the secret and the options of a webhook.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: WebhookOptions,
    uri: Uri,
    secret: Vec<u8>,
    client: HttpClient,
}

/// Why a webhook cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookSetupError {
    /// The secret cannot be read.
    #[error("webhook {webhook}: cannot read the secret: {source}")]
    Read {
        /// The name of the webhook.
        webhook: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The secret is not in the format of Standard Webhooks.
    #[error(
        "webhook {webhook}: secret must be whsec_ followed by 24 to 64 bytes in base64 (openssl rand -base64 32)"
    )]
    Secret {
        /// The name of the webhook.
        webhook: String,
    },
    /// The URL is invalid.
    #[error("webhook {webhook}: url: {reason}")]
    Url {
        /// The name of the webhook.
        webhook: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Endpoint {
    /// Reads the secret.
    ///
    /// # Errors
    /// The secret cannot be read or is invalid.
    pub(crate) fn new(options: &WebhookOptions) -> Result<Self, WebhookSetupError> {
        let webhook = || options.name.clone();
        let uri = options.url.parse::<Uri>();
        let uri = uri.map_err(|error| WebhookSetupError::Url {
            webhook: webhook(),
            reason: error.to_string(),
        })?;
        let secret = options.secret.as_ref().map(Secret::read);
        let secret = secret.unwrap_or_else(|| Ok(String::new()));
        let secret = secret.map_err(|source| WebhookSetupError::Read {
            webhook: webhook(),
            source,
        })?;
        let secret = secret
            .strip_prefix(PREFIX)
            .map(|text| BASE64_STANDARD.decode(text));
        let secret = secret.and_then(Result::ok);
        let secret = secret.filter(|bytes| (24..=64).contains(&bytes.len()));
        let secret = secret.ok_or_else(|| WebhookSetupError::Secret { webhook: webhook() })?;
        let tls = linerate::tls::default_client_config();
        Ok(Self {
            options: options.clone(),
            uri,
            secret,
            client: HttpClient::new(rustls::ClientConfig::clone(&tls), 1),
        })
    }

    /// Returns whether both are the same, also as far as files are concerned.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.options == other.options && self.secret == other.secret
    }

    /// Returns whether events of this kind are to be sent.
    pub(super) fn wants(&self, event: WebhookEvent) -> bool {
        self.options.events.contains(&event)
    }

    /// Sends a batch, signed as of `seconds` since 1970.
    pub(super) async fn post(&self, id: &str, seconds: u64, body: Bytes) -> Result<(), HttpError> {
        let signature = sign(&self.secret, id, seconds, &body);
        let mut headers = HeaderMap::new();
        headers.insert("webhook-timestamp", seconds.into());
        for (name, value) in [("webhook-id", id), ("webhook-signature", &signature)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
        let request = post_json(self.uri.clone(), headers, body);
        self.client.deliver(request).await
    }
}

/// Signs a batch as Standard Webhooks prescribe.
fn sign(secret: &[u8], id: &str, seconds: u64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);
    context.update(format!("{id}.{seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use super::sign;

    #[test]
    fn the_signature_is_that_of_another_implementation() {
        // Computed with `hmac` and `hashlib` of Python.
        let signature = "v1,4GdiKg6lD+NDfJJo4rBkpNFAHFZuBXv3jE9U40ZxejY=";
        let secret = b"0123456789abcdef0123456789abcdef";
        let signed = sign(secret, "a1_1_2", 1_700_000_000, b"{\"events\":[]}");
        assert_eq!(signed, signature);
    }
}
