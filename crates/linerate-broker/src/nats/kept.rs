//! What nodes keep for each other: a stream that holds the newest message of each subject.

use async_nats::jetstream::stream::{Config, DirectGetErrorKind, DiscardPolicy, StorageType};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    streams::{READS_AT_ONCE, Streams, away, refused},
    subject,
};
use crate::broker::BrokerError;

/// The most bytes that nodes keep for each other.
const KEPT_BYTES_MAX: i64 = 64 << 20;

impl Streams {
    /// Keeps a value as the newest one of `subject`, one of those that `all` stands for.
    pub(super) async fn keep(
        &self,
        all: &str,
        subject: String,
        value: Bytes,
    ) -> Result<(), BrokerError> {
        self.stream_of_kept(all).await?;
        let sent = self.context().publish(subject, value).await;
        let acknowledged = match sent {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        acknowledged.map(|_| ()).map_err(|error| away(&error))
    }

    /// Returns the values that are kept.
    pub(super) async fn kept(&self, all: &str) -> Result<Vec<Bytes>, BrokerError> {
        let stream = self.stream_of_kept(all).await?;
        let state = &stream.cached_info().state;
        let numbers = state.first_sequence.max(1)..=state.last_sequence;
        let read = stream::iter(numbers).map(|number| {
            let stream = &stream;
            async move {
                match stream.direct_get(number).await {
                    Ok(message) => Ok(Some(message.payload)),
                    // A newer one has taken its place.
                    Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
                    Err(error) => Err(away(&error)),
                }
            }
        });
        let values: Vec<_> = read.buffered(READS_AT_ONCE).try_collect().await?;
        Ok(values.into_iter().flatten().collect())
    }

    async fn stream_of_kept(
        &self,
        all: &str,
    ) -> Result<async_nats::jetstream::stream::Stream, BrokerError> {
        let config = Config {
            name: subject::stream(all),
            description: Some("kept by linerate".to_owned()),
            subjects: vec![all.to_owned()],
            max_messages_per_subject: 1,
            max_bytes: KEPT_BYTES_MAX,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.replicas(),
            allow_direct: true,
            ..Config::default()
        };
        let stream = self.context().get_or_create_stream(config).await;
        stream.map_err(|error| refused(&error.to_string()))
    }
}
