//! The options of a source, ready to be used.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `kafka` | the options of `[[kafka]]` |
//! | `postgres` | the options of `[[postgres]]` |

#[cfg(feature = "kafka")]
mod kafka;
mod postgres;

use linerate_postgres::{ChangeOptions, NotificationOptions};

#[cfg(not(feature = "kafka"))]
use crate::endpoint_error::EndpointProblem;
use crate::{
    config::{KafkaOptions, PostgresOptions},
    endpoint_error::EndpointError,
};

/// A source that can be started.
#[derive(Debug)]
pub(crate) struct SourceSetup {
    identity: Identity,
    /// True if there are files, which may have changed.
    has_files: bool,
    reads: Reads,
}

/// What the configuration says, including secrets that are in files.
#[derive(Debug, PartialEq)]
enum Identity {
    #[cfg(feature = "kafka")]
    Kafka(KafkaOptions, Option<linerate_kafka::Login>),
    Postgres(PostgresOptions, linerate_postgres::ServerUrl),
}

/// What a source reads.
#[derive(Debug)]
pub(super) enum Reads {
    Changes(ChangeOptions),
    Notifications(NotificationOptions),
    #[cfg(feature = "kafka")]
    Records(linerate_kafka::SourceOptions),
}

impl SourceSetup {
    /// Reads the URL and the certificates of a database.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    pub(crate) fn postgres(options: &PostgresOptions) -> Result<Self, EndpointError> {
        postgres::read(options).map_err(|problem| problem.of("postgres", &options.name))
    }

    /// Reads the password, and checks the certificates, of a Kafka cluster. `None` if none of its
    /// topics is read.
    ///
    /// # Errors
    /// A file cannot be read, or what it contains cannot be used.
    #[cfg(feature = "kafka")]
    pub(crate) fn kafka(options: &KafkaOptions) -> Result<Option<Self>, EndpointError> {
        if options.topics.is_empty() {
            return Ok(None);
        }
        let read = kafka::read(options).map(Some);
        read.map_err(|problem| problem.of("kafka", &options.name))
    }

    /// Refuses a Kafka cluster, to which this program cannot connect.
    #[cfg(not(feature = "kafka"))]
    pub(crate) fn kafka(options: &KafkaOptions) -> Result<Option<Self>, EndpointError> {
        Err(EndpointProblem::Unsupported("kafka").of("kafka", &options.name))
    }

    pub(super) fn name(&self) -> &str {
        match &self.identity {
            #[cfg(feature = "kafka")]
            Identity::Kafka(options, _) => &options.name,
            Identity::Postgres(options, _) => &options.name,
        }
    }

    pub(super) const fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Returns whether a source can continue with these options.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        !self.has_files && self.identity == other.identity
    }
}

#[cfg(all(test, not(feature = "kafka")))]
mod tests {
    use super::SourceSetup;
    use crate::config::KafkaOptions;

    #[test]
    fn a_cluster_is_refused_without_the_feature() {
        let refused = SourceSetup::kafka(&KafkaOptions {
            name: "orders".to_owned(),
            ..KafkaOptions::default()
        });
        let message = "kafka orders: needs a linerate that was built with --features kafka";
        assert_eq!(refused.unwrap_err().to_string(), message);
    }
}
