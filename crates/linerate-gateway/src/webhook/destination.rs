//! Where batches are sent: to a URL of the application, to a Redis Stream, or to a NATS subject.

use std::{sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use linerate_broker::{
    BrokerError,
    nats::{Message, SubjectWriter},
    redis::StreamWriter,
};
use ring::hmac;

use super::{encode, queue::Batch};
use crate::{
    auth::PusherApp,
    clock::milliseconds,
    http_client::{HttpClient, HttpError, post_json},
};

/// Where batches are sent.
#[derive(Debug)]
pub(super) enum Destination {
    Http(HttpDestination),
    Nats(SubjectWriter),
    Redis(StreamWriter),
}

/// A URL that batches are posted to.
#[derive(Debug)]
pub(super) struct HttpDestination {
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) client: HttpClient,
    pub(super) signer: Signer,
}

/// The format of a body, and how it is signed.
#[derive(Debug)]
pub(super) enum Signer {
    /// As Pusher does.
    Pusher(Arc<PusherApp>),
    /// As Standard Webhooks prescribe, with this secret.
    Standard(Vec<u8>),
}

/// Why a batch was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error(transparent)]
    Broker(#[from] BrokerError),
    #[error(transparent)]
    Http(#[from] HttpError),
}

impl Destination {
    /// Sends a batch of `node`.
    pub(super) async fn send(&self, node: &str, batch: &Batch) -> Result<(), SendError> {
        match self {
            Self::Http(http) => http.post(node, batch).await?,
            Self::Nats(subject) => publish(subject, node, batch).await?,
            Self::Redis(stream) => append(stream, node, batch).await?,
        }
        Ok(())
    }
}

impl HttpDestination {
    async fn post(&self, node: &str, batch: &Batch) -> Result<(), HttpError> {
        let time_ms = milliseconds(SystemTime::now());
        let mut headers = self.headers.clone();
        let mut add = |name: &'static str, value: &str| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        };
        let body = match &self.signer {
            Signer::Pusher(app) => {
                let body = encode::pusher(batch, time_ms);
                add("x-pusher-key", &app.key);
                add("x-pusher-signature", &app.sign(&body));
                body
            }
            Signer::Standard(secret) => {
                let body = encode::document(node, batch);
                let last = batch.first + batch.events.len() as u64 - 1;
                let id = format!("{node}_{}_{last}", batch.first);
                let seconds = time_ms / 1_000;
                add("webhook-id", &id);
                add("webhook-timestamp", &seconds.to_string());
                add("webhook-signature", &sign(secret, &id, seconds, &body));
                body
            }
        };
        let request = post_json(self.uri.clone(), headers, body.into());
        self.client.deliver(request).await
    }
}

/// Appends each event to a Redis Stream.
async fn append(stream: &StreamWriter, node: &str, batch: &Batch) -> Result<(), BrokerError> {
    let entries = encode::records(node, batch).into_iter().map(|record| {
        vec![
            ("id", record.id.into_bytes()),
            ("event", record.kind.into()),
            ("data", record.json),
        ]
    });
    let entries: Vec<_> = entries.collect();
    stream.append(&entries).await
}

/// Publishes each event on a NATS subject.
async fn publish(subject: &SubjectWriter, node: &str, batch: &Batch) -> Result<(), BrokerError> {
    let messages = encode::records(node, batch)
        .into_iter()
        .map(|record| Message {
            id: record.id,
            headers: vec![("Linerate-Event", record.kind)],
            payload: Bytes::from(record.json),
        });
    let messages: Vec<_> = messages.collect();
    subject.publish(&messages).await
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
