//! Values that nodes store for each other, in a stream that holds the newest message of each
//! subject. Every read deletes the messages that expired long ago.

use std::time::{Duration, SystemTime};

use async_nats::{
    HeaderMap,
    jetstream::stream::{Config, DirectGetErrorKind, DiscardPolicy, StorageType, Stream},
};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    errors::explain,
    streams::{READS_AT_ONCE, Streams},
    subject,
};
use crate::broker::BrokerError;

/// The maximum number of bytes that nodes store for each other.
const KEPT_BYTES_MAX: i64 = 64 << 20;

/// The header with the time at which a value expires, in seconds since 1970.
pub(super) const EXPIRES: &str = "Linerate-Expires";

/// How long an expired value is kept before it is deleted: clocks differ, and a deletion affects
/// all nodes.
const SPARE: Duration = Duration::from_secs(60 * 60);

impl Streams {
    /// Stores a value as the newest one of `subject`, which `all` must match.
    pub(super) async fn keep(
        &self,
        all: &str,
        subject: String,
        value: Bytes,
        expires_at: Option<u64>,
    ) -> Result<(), BrokerError> {
        self.value_stream(all).await?;
        let mut headers = HeaderMap::new();
        if let Some(at) = expires_at {
            headers.insert(EXPIRES, at.to_string());
        }
        let sent = self
            .context
            .publish_with_headers(subject, headers, value)
            .await;
        let acknowledged = match sent {
            Ok(acknowledgement) => acknowledgement.await,
            Err(error) => Err(error),
        };
        acknowledged.map(|_| ()).map_err(BrokerError::away)
    }

    /// Returns the stored values, and deletes those that expired long ago.
    pub(super) async fn kept(&self, all: &str) -> Result<Vec<Bytes>, BrokerError> {
        let stream = self.value_stream(all).await?;
        let state = &stream.cached_info().state;
        let numbers = state.first_sequence.max(1)..=state.last_sequence;
        let long_ago = SystemTime::now() - SPARE;
        let long_ago = long_ago.duration_since(SystemTime::UNIX_EPOCH);
        let long_ago = long_ago.unwrap_or_default().as_secs();
        let read = stream::iter(numbers).map(|number| {
            let stream = &stream;
            async move {
                match stream.direct_get(number).await {
                    Ok(message) if is_over(&message.headers, long_ago) => {
                        // Delete by number, so that a newer message of the subject stays. Ignore
                        // errors: another node may have been faster, and a message that cannot be
                        // deleted now can be deleted at the next read.
                        _ = stream.delete_message(number).await;
                        Ok(None)
                    }
                    Ok(message) => Ok(Some(message.payload)),
                    // A newer message has replaced it.
                    Err(error) if error.kind() == DirectGetErrorKind::NotFound => Ok(None),
                    Err(error) => Err(BrokerError::away(error)),
                }
            }
        });
        let values: Vec<_> = read.buffered(READS_AT_ONCE).try_collect().await?;
        Ok(values.into_iter().flatten().collect())
    }

    async fn value_stream(&self, all: &str) -> Result<Stream, BrokerError> {
        let config = Config {
            name: subject::stream(all),
            description: Some("kept by linerate".to_owned()),
            subjects: vec![all.to_owned()],
            max_messages_per_subject: 1,
            max_bytes: KEPT_BYTES_MAX,
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: self.options.stream_replicas.into(),
            allow_direct: true,
            ..Config::default()
        };
        let stream = self.context.get_or_create_stream(config).await;
        stream.map_err(|error| explain(&error))
    }
}

/// Returns whether a value had expired at `at`, in seconds since 1970.
pub(super) fn is_over(headers: &HeaderMap, at: u64) -> bool {
    let expires = headers.get(EXPIRES);
    let expires: Option<u64> = expires.and_then(|value| value.as_str().parse().ok());
    expires.is_some_and(|expires| expires <= at)
}
