//! A test write, to a stream that is like those of durable channels.

use std::time::Duration;

use async_nats::jetstream::{
    context::PublishErrorKind,
    message::PublishMessage,
    stream::{Config, DiscardPolicy, StorageType},
};

use super::{errors::explain, streams::Streams, subject};
use crate::broker::BrokerError;

/// How long a probe write is stored.
const PROBE_TTL: Duration = Duration::from_secs(60);

impl Streams {
    /// Writes a message to the stream of `subject`, which is created unless it exists.
    pub(super) async fn probe_write(&self, subject: String) -> Result<(), BrokerError> {
        if self.send_probe(&subject).await? {
            return Ok(());
        }
        let config = Config {
            name: subject::stream(&subject),
            description: Some("test writes of linerate".to_owned()),
            subjects: vec![subject.clone()],
            max_messages: 1,
            max_age: PROBE_TTL,
            duplicate_window: PROBE_TTL,
            discard: DiscardPolicy::Old,
            storage: StorageType::File,
            num_replicas: self.options.stream_replicas.into(),
            ..Config::default()
        };
        let created = self.context.get_or_create_stream(config).await;
        created.map_err(|error| explain(&error))?;
        match self.send_probe(&subject).await? {
            true => Ok(()),
            false => Err(BrokerError::refused("stream of test writes was deleted")),
        }
    }

    /// Returns whether the stream exists.
    async fn send_probe(&self, subject: &str) -> Result<bool, BrokerError> {
        let message = PublishMessage::build().expected_stream(subject::stream(subject));
        match self.send_acknowledged(subject.to_owned(), message).await {
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                PublishErrorKind::StreamNotFound => Ok(false),
                PublishErrorKind::TimedOut => Err(BrokerError::Timeout {
                    deadline: self.options.command_timeout,
                }),
                PublishErrorKind::BrokenPipe => Err(BrokerError::away(error)),
                _ => Err(BrokerError::refused(error)),
            },
        }
    }
}
