//! The reasons why a source cannot read.

use std::time::Duration;

use linerate_source::Trouble;
use rdkafka::error::KafkaError;

/// The reason why a source cannot read at the moment. It tries again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    /// The source has ended.
    #[error("the thread that reads has ended")]
    Ended,
    /// Kafka has deleted records that were to be read next. They are reported before the source
    /// reads again.
    #[error("Kafka has deleted records before they were read")]
    Expired,
    /// Kafka refused a request, or did not answer.
    #[error("Kafka: {0}")]
    Kafka(#[from] KafkaError),
    /// Publications are not accepted.
    #[error(
        "the broker accepted no publications within {} s, so another node may read",
        .within.as_secs()
    )]
    Late {
        /// How long the source has tried.
        within: Duration,
    },
    /// The thread that reads cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

impl From<SourceError> for Trouble {
    fn from(error: SourceError) -> Self {
        Self::Failed(error.to_string())
    }
}
