//! Postgres as a source of publications: changes of tables and messages, read by logical decoding
//! (`pgoutput`), and notifications (`NOTIFY`).
//!
//! ```text
//! Postgres ─► replication ─► batch ─► Sink ─► broker ─► clients
//!    ▲                         │
//!    └── confirmed position ◄──┘ once the broker has accepted the batch
//! ```
//!
//! A source is not a broker: it publishes each change through a [`Sink`](linerate_source::Sink)
//! into the broker that the nodes share, and works with every broker. The sink is the only seam
//! between this crate and a gateway.
//!
//! All nodes start the same sources, and one of them reads: Postgres lets one connection read a
//! replication slot, and an advisory lock does the same for notifications. Another node continues
//! within about a second after the reader has ended.
//!
//! [`changes`] loses and repeats nothing; [`notifications`] reports what it may have missed. Each
//! explains its guarantees.
#![forbid(unsafe_code)]

pub mod changes;
mod connect;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod json;
mod lsn;
pub mod notifications;
pub mod options;
mod pgoutput;
mod position;
mod reader;
mod rows;
mod session;

pub use changes::run as run_changes;
pub use error::SourceError;
pub use lsn::Lsn;
pub use notifications::run as run_notifications;
pub use options::{ChangeOptions, NotificationOptions, ServerUrl, TableOptions, UrlError};
