//! What a broker tells its node.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ChannelName, Publication};

use crate::broker::BoxFuture;

/// Something that a broker tells its node, in the order in which it happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A message of the nodes among themselves.
    Control(Bytes),
    /// Publications may have been missed.
    Gap(Gap),
    /// The state of the link has changed.
    Link(LinkState),
    /// A publication in a subscribed channel.
    Publication {
        /// The channel, or the pattern, that was subscribed.
        channel: ChannelName,
        /// What was published.
        publication: Publication,
    },
}

/// A time in which publications may have been missed. Told once it is over and the subscription stands again.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The channels, or all of them if `None`.
    pub channels: Option<Vec<ChannelName>>,
    /// How long it lasted at most.
    pub lasted: Duration,
    /// What happened.
    pub reason: GapReason,
}

/// Why publications may have been missed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum GapReason {
    /// The link to the broker was cut.
    LinkLost,
    /// The broker dropped messages, because this node took them too slowly.
    Overflow,
    /// A payload was longer than this node takes.
    Oversized,
    /// The stream was reset, or went back in time.
    StreamReset,
}

/// How the link to the broker is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Nothing arrives: not connected, or the last loopback publication did not come back in time.
    Deaf,
    /// The last loopback publication came back.
    Up {
        /// How long it took.
        round_trip: Duration,
    },
}

/// Takes what a broker tells.
pub trait Ingest: Send + Sync + 'static {
    /// Takes everything that arrived together, in order. Ready when there is room for more; a broker waits for
    /// that before it goes on reading.
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()>;

    /// Takes note of a publication that the broker keeps in this process, whether any channel that was subscribed to gets
    /// it or not.
    fn keep(&self, _publication: &Publication) {}

    /// Says how long it hurts nobody if publications come later, because all that want them gather batches. A broker
    /// that is hardly busy may read less often by that, which saves wakes.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}
