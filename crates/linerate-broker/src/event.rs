//! The events that a broker reports to its node.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ChannelName, Publication};

/// An event that a broker reports to its node, in the order in which it happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// An internal message from one of the nodes.
    Control(Bytes),
    /// Publications may have been missed.
    Gap(Gap),
    /// The state of the link has changed.
    Link(LinkState),
    /// A publication in a subscribed channel.
    Publication {
        /// The channel or pattern that was subscribed.
        channel: ChannelName,
        /// The publication.
        publication: Publication,
    },
    /// Names that became vacant because a node that [occupied](crate::Broker::set_occupancy) them
    /// has ended. Only one node is told of each.
    Vacated(Vec<String>),
}

impl Event {
    /// Creates a gap of no duration in one channel.
    pub(crate) fn gap_in(channel: ChannelName, reason: GapReason) -> Self {
        Self::Gap(Gap {
            channels: Some(vec![channel]),
            lasted: Duration::ZERO,
            reason,
        })
    }
}

/// A period in which publications may have been missed. Reported once it is over and the
/// subscription works again.
#[derive(Clone, Debug)]
pub struct Gap {
    /// The affected channels, or `None` for all of them.
    pub channels: Option<Vec<ChannelName>>,
    /// The longest time that the period can have lasted.
    pub lasted: Duration,
    /// The cause.
    pub reason: GapReason,
}

/// The reason why publications may have been missed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum GapReason {
    /// The link to the broker was lost.
    LinkLost,
    /// The broker dropped messages because this node processed them too slowly.
    Overflow,
    /// A payload was larger than this node accepts.
    Oversized,
    /// A source of publications, such as a database, may have lost some before they were published.
    Source,
    /// The stream was reset, or went back to an earlier state.
    StreamReset,
}

/// The state of the link to the broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Nothing arrives: the link is not connected, or the last loopback publication did not come
    /// back in time.
    Deaf,
    /// The last loopback publication came back.
    Up {
        /// The time between sending it and receiving it.
        round_trip: Duration,
    },
}
