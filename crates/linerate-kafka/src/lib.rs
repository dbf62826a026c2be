//! Kafka as a source of publications, and as a destination: records of topics are published in
//! channels, and publications are written to topics.
//!
//! ```text
//! Kafka ─► consumer ─► batch ─► Publisher ─► broker ─► clients
//!   ▲                    │
//!   └─ committed offset ◄┘ once the broker has accepted the batch
//!
//! clients ─► Producer ─► queue of librdkafka ─► Kafka
//! ```
//!
//! All nodes are members of one consumer group, so that Kafka divides the partitions among them and
//! gives those of a node that ends to others.
//!
//! **Guarantees.** Records of a partition are published in their order. Offsets are committed only
//! after the broker has accepted the publications, so none is lost. A record that is read twice,
//! because a node ended before the commit, has the same idempotency key, which brokers remember for
//! a few minutes, and in durable channels its position is compared with the newest ones in the
//! channel's history. Records that Kafka has deleted before they were read are reported as a gap. A
//! producer stores the records of a key in the order in which it got them, once, and counts those
//! that Kafka does not store.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `absent` | the producer of a program without the client |
//! | `config` | the settings of librdkafka |
//! | `context` | what librdkafka reports: partitions that come and go, errors |
//! | `convert` | from a record to a publication |
//! | `error` | the reasons why a source cannot read |
//! | `field` | names of parts of a record |
//! | `job` | what the thread that reads asks of the runtime |
//! | `member` | members of JSON objects |
//! | `offsets` | where to begin in partitions, and which records are missing |
//! | `options` | the options of a source and of a producer |
//! | `position` | positions of records |
//! | `produce` | what producers write, why they do not, and how many records they have written |
//! | `producer` | writes records |
//! | `reader` | the thread that reads |
//! | `run` | reads and publishes until the source ends |
//!
//! librdkafka calls back on the thread that polls it, and these calls may wait for Kafka. A source
//! therefore reads on its own thread, which asks the runtime to publish.
#![forbid(unsafe_code)]

#[cfg(not(feature = "client"))]
mod absent;
#[cfg(feature = "client")]
mod config;
#[cfg(feature = "client")]
mod context;
#[cfg(any(feature = "client", fuzzing, test))]
mod convert;
#[cfg(feature = "client")]
mod error;
mod field;
#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(feature = "client")]
mod job;
#[cfg(any(feature = "client", fuzzing, test))]
mod member;
#[cfg(feature = "client")]
mod offsets;
pub mod options;
#[cfg(any(feature = "client", fuzzing, test))]
mod position;
mod produce;
#[cfg(feature = "client")]
mod producer;
#[cfg(feature = "client")]
mod reader;
#[cfg(feature = "client")]
mod run;

#[cfg(not(feature = "client"))]
pub use absent::Producer;
pub use field::{Field, FieldError};
pub use options::{
    ClusterOptions, Compression, Login, Mechanism, ProducerOptions, SourceOptions, Start, TlsPaths,
    TopicOptions,
};
pub use produce::{NewRecord, ProduceError, ProducerStatus};
#[cfg(feature = "client")]
pub use producer::Producer;
#[cfg(feature = "client")]
pub use run::run;
