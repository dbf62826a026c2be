//! Where and how the batches of a webhook are sent.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Uri};
use ring::hmac;

use super::{event::Happened, interest::includes};
use crate::{
    client_tls::TlsFiles,
    config::{Secret, WebhookOptions},
    endpoint_error::{EndpointError, EndpointProblem},
    http_client::{HttpClient, HttpError, post_json, read_headers},
};

/// The prefix of secrets of Standard Webhooks.
const PREFIX: &str = "whsec_";

/// The URL, the secret and the options of a webhook.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(super) options: WebhookOptions,
    uri: Uri,
    secret: Vec<u8>,
    headers: HeaderMap,
    client: HttpClient,
}

impl Endpoint {
    /// Reads the secret, the headers and the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn new(options: &WebhookOptions) -> Result<Self, EndpointError> {
        Self::read(options).map_err(|problem| problem.of("webhook", &options.name))
    }

    fn read(options: &WebhookOptions) -> Result<Self, EndpointProblem> {
        let uri = options.url.parse::<Uri>();
        let uri = uri.map_err(|error| EndpointProblem::invalid("url", error))?;
        let secret = options
            .secret
            .as_ref()
            .map_or(Ok(String::new()), Secret::read);
        let secret = secret.map_err(|error| EndpointProblem::invalid("secret", error))?;
        let secret = secret
            .strip_prefix(PREFIX)
            .map(|text| BASE64_STANDARD.decode(text));
        let secret = secret.and_then(Result::ok);
        let secret = secret.filter(|bytes| (24..=64).contains(&bytes.len()));
        let because =
            "must be whsec_ followed by 24 to 64 bytes in base64 (openssl rand -base64 32)";
        let secret = secret.ok_or_else(|| EndpointProblem::invalid("secret", because))?;
        let files = TlsFiles {
            authorities: options.tls_authorities.as_deref(),
            certificate: options.tls_certificate.as_deref(),
            key: options.tls_key.as_deref(),
        };
        Ok(Self {
            options: options.clone(),
            uri,
            secret,
            headers: read_headers(&options.headers)?,
            client: HttpClient::new(files.read()?, 1),
        })
    }

    /// Returns whether this is to be sent: by its kind, and by the channel if it has one.
    pub(super) fn wants(&self, happened: &Happened) -> bool {
        let options = &self.options;
        let is_included = |channel| includes(&options.channels, channel);
        options.events().contains(&happened.kind()) && happened.channel().is_none_or(is_included)
    }

    /// Sends a batch, signed as of `seconds` since 1970.
    pub(super) async fn post(&self, id: &str, seconds: u64, body: Bytes) -> Result<(), HttpError> {
        let signature = sign(&self.secret, id, seconds, &body);
        let mut headers = self.headers.clone();
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
