//! The use case that linerate was made for, as a benchmark: JSON is published in Redis at rising
//! rates, and a server filters it for each client and pushes it.
//!
//! [`peer`] starts a server. [`feed`] publishes at a rate that does not depend on the server.
//! [`audience`] receives on all connections and checks that each message arrives once and in order.
//! [`trial`] holds the results at one rate, and [`ladder`] looks for the highest rate that a server
//! sustains.

pub mod audience;
pub mod dialect;
pub mod feed;
pub mod ladder;
pub mod message;
pub mod peer;
pub mod table;
pub mod trial;

mod subscriber;

use std::io;
use std::time::Duration;

use thiserror::Error;

pub use dialect::{Dialect, Transport};
pub use peer::{Peer, start_redis};
pub use trial::Trial;

/// The channel in which everything is published.
pub const CHANNEL: &str = "story";

/// The subscribers of a server and their settings.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// Number of subscribers.
    pub subscribers: u32,
    /// Number of sources from which messages come in turn. Each subscriber asks for one of them.
    pub sources: u32,
    /// Interval of the batches in milliseconds; 0 means no batches.
    pub batch_ms: u32,
    /// Number of additional subscribers that read nothing. With any number, even 0, the sockets of
    /// all of these are filled before a trial counts, so that different numbers can be compared.
    pub stalled: Option<u32>,
}

/// The reason why the benchmark cannot be run. A failure of the server under load is not an error
/// but part of a [`Trial`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoryError {
    /// A connection was refused, or its client was not subscribed.
    #[error("{peer} did not subscribe a client: {what}")]
    NotSubscribed {
        /// The protocol of the server.
        peer: String,
        /// What the server did.
        what: String,
    },
    /// A program has exited, or accepts no connections.
    #[error("cannot run {program}: {what}")]
    NotRunning {
        /// The program.
        program: String,
        /// What it wrote.
        what: String,
    },
    /// Some subscribers received nothing before the first trial.
    #[error("{waiting} of {subscribers} subscribers received nothing within {waited:?}")]
    Silent {
        /// Number of subscribers that received nothing.
        waiting: usize,
        /// Number of all subscribers.
        subscribers: usize,
        /// How long the benchmark waited.
        waited: Duration,
    },
    /// A system call failed.
    #[error("{what}")]
    System {
        /// What failed.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
}

pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> StoryError {
    move |source| StoryError::System { what, source }
}
