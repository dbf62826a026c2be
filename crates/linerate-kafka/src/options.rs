//! The options of a source and of a producer.

use std::{fmt, path::PathBuf, time::Duration};

use linerate_source::Template;
use serde::Deserialize;

use crate::field::Field;

/// The options of a source.
#[derive(Clone, Debug)]
pub struct SourceOptions {
    /// The name of the source, in tags, idempotency keys, logs and metrics. It must stay the same,
    /// because publications are recognised by it.
    pub name: String,
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The consumer group, which remembers what has been published.
    pub group: String,
    /// Where to begin in topics that the group has not read.
    pub start: Start,
    /// The maximum size of a record and of its payload, in bytes. Larger ones are refused.
    pub record_bytes_max: usize,
    /// The maximum size of records that are read ahead, in bytes.
    pub prefetch_bytes_max: usize,
    /// The time after which a node that does not answer Kafka loses its partitions.
    pub session_timeout: Duration,
    /// The topics.
    pub topics: Vec<TopicOptions>,
}

/// The options of a producer.
#[derive(Clone, Debug, PartialEq)]
pub struct ProducerOptions {
    /// The name of the cluster, in logs.
    pub name: String,
    /// The cluster.
    pub cluster: ClusterOptions,
    /// The topic.
    pub topic: String,
    /// How records are compressed.
    pub compression: Compression,
    /// The maximum size of a value, in bytes. Larger ones are refused.
    pub record_bytes_max: usize,
    /// How long Kafka may take to store a record. `None` tries for as long as the producer exists.
    pub timeout: Option<Duration>,
    /// The maximum number of records that are not stored yet. More are refused.
    pub queue_max: usize,
    /// The maximum memory of the records that are not stored yet, in bytes. At most a quarter of
    /// the memory budget is used.
    pub queue_bytes_max: usize,
}

/// How to connect to a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterOptions {
    /// The addresses (`host:port`) of servers to begin with.
    pub servers: Vec<String>,
    /// Encrypts connections.
    pub tls: Option<TlsPaths>,
    /// Authenticates.
    pub login: Option<Login>,
}

/// How the batches of a producer are compressed.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// With gzip.
    Gzip,
    /// With LZ4.
    Lz4,
    /// Not at all.
    #[default]
    None,
    /// With Snappy.
    Snappy,
    /// With Zstandard.
    Zstd,
}

impl Compression {
    /// Returns the name in the configuration of Kafka clients.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::None => "none",
            Self::Snappy => "snappy",
            Self::Zstd => "zstd",
        }
    }
}

/// How the records of a topic are published.
#[derive(Clone, Debug)]
pub struct TopicOptions {
    /// The name.
    pub topic: String,
    /// The channel. Names in braces are [fields](Field).
    pub channel: Template,
    /// The payload. `None` publishes the value as it is.
    pub payload: Option<Field>,
    /// The names of tags, and their values. A tag is left out if a record has no value for it.
    pub tags: Vec<(String, Field)>,
}

/// Where to begin in a topic that the group has not read.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Start {
    /// At the oldest record.
    Earliest,
    /// After the newest record.
    #[default]
    Latest,
}

/// The files for TLS, in PEM.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsPaths {
    /// The authorities to trust, instead of those of the system.
    pub authorities: Option<PathBuf>,
    /// The certificate chain to present, together with `key`.
    pub certificate: Option<PathBuf>,
    /// The private key of that certificate.
    pub key: Option<PathBuf>,
}

/// How to authenticate (SASL). Its `Debug` output does not contain the password.
#[derive(Clone, Eq, PartialEq)]
pub struct Login {
    /// How the password is proved.
    pub mechanism: Mechanism,
    /// The user.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut login = f.debug_struct("Login");
        login.field("mechanism", &self.mechanism);
        login.field("user", &self.user).finish_non_exhaustive()
    }
}

/// A SASL mechanism.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mechanism {
    /// Sends the password, so it needs TLS.
    Plain,
    /// SCRAM with SHA-256 (RFC 7677).
    ScramSha256,
    /// SCRAM with SHA-512.
    ScramSha512,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 3] = [Self::Plain, Self::ScramSha256, Self::ScramSha512];

    /// Returns the registered name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}
