//! Values that nodes store for each other and that one of them takes, in a stream that holds the
//! newest message of each subject. The node that deletes a message by its number has taken it.

use std::time::{Duration, SystemTime};

use async_nats::{
    HeaderMap,
    jetstream::{
        context::PublishErrorKind,
        message::PublishMessage,
        stream::{Config, DeleteMessageErrorKind, DiscardPolicy, StorageType},
    },
};
use bytes::Bytes;

use super::{
    errors::{explain, unavailable},
    kept::{EXPIRES, is_over},
    streams::Streams,
    subject::{self, Subjects},
};
use crate::broker::{BrokerError, PUT_TTL_MAX};

/// The maximum number of bytes that nodes store for each other to take. The oldest are dropped.
const BYTES_MAX: i64 = 256 << 20;

impl Streams {
    /// Stores a value for `ttl`.
    pub(super) async fn put(
        &self,
        subjects: &Subjects,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<(), BrokerError> {
        let subject = subjects.deposit(Some(key));
        let expires_at = seconds_now() + ttl.min(PUT_TTL_MAX).as_secs().max(1);
        let message = || {
            let mut headers = HeaderMap::new();
            headers.insert(EXPIRES, expires_at.to_string());
            let message = PublishMessage::build().payload(value.clone());
            message.headers(headers).expected_stream(name(subjects))
        };
        match self.send_acknowledged(subject.clone(), message()).await {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {}
            Err(error) => return Err(BrokerError::away(error)),
        }
        self.create_deposits(subjects).await?;
        let sent = self.send_acknowledged(subject, message()).await;
        sent.map(|_| ()).map_err(BrokerError::away)
    }

    /// Removes a value and returns it, unless it has expired.
    pub(super) async fn take(
        &self,
        subjects: &Subjects,
        key: &str,
    ) -> Result<Option<Bytes>, BrokerError> {
        let name = name(subjects);
        let last = self.last(name.clone(), subjects.deposit(Some(key))).await?;
        if last.sequence == 0 || is_over(&last.headers, seconds_now()) {
            return Ok(None);
        }
        let stream = self.context.get_stream_no_info(&name).await;
        let stream = stream.map_err(|error| unavailable(&error))?;
        match stream.delete_message(last.sequence).await {
            Ok(true) => Ok(Some(last.payload)),
            Ok(false) => Ok(None),
            Err(error) => match error.kind() {
                // Another node has taken it.
                DeleteMessageErrorKind::JetStream(_) => Ok(None),
                _ => Err(unavailable(&error)),
            },
        }
    }

    async fn create_deposits(&self, subjects: &Subjects) -> Result<(), BrokerError> {
        let config = Config {
            name: name(subjects),
            description: Some("deposits of linerate".to_owned()),
            subjects: vec![subjects.deposit(None)],
            max_messages_per_subject: 1,
            max_age: PUT_TTL_MAX,
            max_bytes: BYTES_MAX,
            discard: DiscardPolicy::Old,
            storage: StorageType::Memory,
            num_replicas: self.options.stream_replicas.into(),
            allow_direct: true,
            ..Config::default()
        };
        let created = self.context.get_or_create_stream(config).await;
        created.map(|_| ()).map_err(|error| explain(&error))
    }
}

/// Returns the name of the stream.
fn name(subjects: &Subjects) -> String {
    subject::stream(&subjects.deposit(None))
}

/// Returns the time in seconds since 1970.
fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
