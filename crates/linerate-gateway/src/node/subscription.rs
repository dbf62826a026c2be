//! The parameters of a subscription.

use std::sync::Arc;

use linerate_broker::StreamOptions;
use linerate_hub::{ChannelName, ChannelOptions, ClientInfo, StreamPosition, SubscriptionOptions};

use super::Trail;

/// The parameters of a subscription.
#[derive(Clone, Debug)]
pub(crate) struct Subscribe {
    /// The channel, or a pattern if the channel's options allow it.
    pub channel: ChannelName,
    /// What the broker stores for the channel.
    pub stream: StreamOptions,
    /// What the worker stores for the channel.
    pub ring: ChannelOptions,
    /// The delivery options of the subscriber.
    pub options: SubscriptionOptions,
    /// Where the subscription begins.
    pub from: StartPosition,
    /// The epochs in which the client has been. Their streams are not delivered again.
    pub trail: Trail,
    /// How missed publications reach the client.
    pub recovery: Recovery,
    /// The presence information of the client in the channel; `None` if it is not to be listed.
    pub presence: Option<Arc<ClientInfo>>,
    /// True if other clients are told of `presence`, if they ask for it.
    pub is_announced: bool,
    /// True if the client is told who joins and leaves.
    pub follows: bool,
}

/// How publications are delivered to a subscriber.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    /// The options of the subscription in the hub.
    pub options: SubscriptionOptions,
    /// The presence information of the client in the channel; `None` if it is not listed.
    pub presence: Option<Arc<ClientInfo>>,
    /// True if other clients are told of `presence`, if they ask for it.
    pub is_announced: bool,
    /// True if the client is told who joins and leaves.
    pub follows: bool,
}

/// Where a subscription begins.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum StartPosition {
    /// After this position, which the client has seen.
    After(StreamPosition),
    /// With the newest publication of the stream, unless the client has seen it: this is the last
    /// position that the client knows, with offset 0 if there is none.
    Cached(StreamPosition),
    /// With the next publication.
    #[default]
    Live,
    /// With the next publication, and the client is told the position before it.
    Newest,
}

/// How missed publications reach the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Recovery {
    /// In the reply, as far as they fit. If more than `publications_max` were missed, nothing is
    /// recovered.
    Reply {
        /// The maximum number of publications to recover.
        publications_max: usize,
    },
    /// As blocks ahead of live ones.
    Stream {
        /// The maximum number of publications to recover.
        publications_max: usize,
    },
}
