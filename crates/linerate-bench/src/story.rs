//! The story that linerate comes from, told again as a measurement: JSON is published in Redis at rising rates, a server
//! filters it for each client and pushes it.
//!
//! [`peer`] starts a server, [`feed`] publishes at a rate that nothing slows, [`audience`] takes what comes on all
//! connections and checks that each message came once and in order, [`trial`] holds what one rate gave, and [`ladder`]
//! looks for the highest rate that a server sustains.

pub mod audience;
pub mod dialect;
pub mod feed;
pub mod ladder;
pub mod message;
pub mod peer;
pub mod redis;
pub mod table;
pub mod trial;

mod subscriber;

use std::io;
use std::time::Duration;

use thiserror::Error;

pub use dialect::Dialect;
pub use peer::{Peer, PeerServer};
pub use redis::Redis;
pub use trial::{Cell, Trial};

/// The channel that everything is published in.
pub const CHANNEL: &str = "story";

/// Why the story can't be told. What a server does wrong under load is no error but part of a [`Trial`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoryError {
    /// A connection was refused or not subscribed.
    #[error("{peer} did not subscribe a client: {what}")]
    NotSubscribed {
        /// The server.
        peer: String,
        /// What it did.
        what: String,
    },
    /// A program ended, or takes no connections.
    #[error("{program} does not run: {what}")]
    NotRunning {
        /// The program.
        program: String,
        /// What it said.
        what: String,
    },
    /// Subscribers got nothing before the first trial.
    #[error("{waiting} of {subscribers} subscribers got nothing within {waited:?}")]
    Silent {
        /// Those without a message.
        waiting: usize,
        /// All of them.
        subscribers: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// The system refuses.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> StoryError {
    move |source| StoryError::System { what, source }
}
