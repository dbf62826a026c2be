//! Messages that only Pusher clients get.

use linerate_hub::{ChannelName, ClientInfo, Publication};
use serde_json::value::RawValue;

/// A message that only Pusher clients get.
#[derive(Clone, Debug)]
pub(crate) enum PusherMessage {
    /// A cache channel has no event to begin with.
    CacheMiss(ChannelName),
    /// Reports an error. The connection stays open.
    Error {
        /// The code, if the protocol has one for the error.
        code: Option<u16>,
        /// A short description for people.
        message: String,
    },
    /// The last event of a cache channel.
    Event {
        /// The channel.
        channel: ChannelName,
        /// The event.
        publication: Publication,
    },
    /// The user of the connection is known.
    SignedIn {
        /// The user, as the client sent it.
        user_data: String,
    },
    /// The client is not subscribed.
    SubscribeError(PusherSubscribeError),
    /// The client is subscribed.
    Subscribed {
        /// The channel.
        channel: ChannelName,
        /// The users in it, if it is a presence channel.
        members: Option<Vec<PusherMember>>,
    },
    /// A channel has this many subscriptions.
    SubscriptionCount {
        /// The channel.
        channel: ChannelName,
        /// The number of subscriptions, on all nodes.
        count: u64,
    },
}

/// Why a client is not subscribed.
#[derive(Clone, Debug)]
pub(crate) struct PusherSubscribeError {
    /// The channel, as the client sent it.
    pub(crate) channel: String,
    /// The kind of the error.
    pub(crate) kind: &'static str,
    /// A short description for people.
    pub(crate) error: String,
    /// The status that a backend would have refused with.
    pub(crate) status: u16,
}

/// A user in a presence channel.
#[derive(Clone, Debug)]
pub(crate) struct PusherMember {
    /// The user ID.
    pub(crate) user: String,
    /// What others see of the user, as JSON.
    pub(crate) info: Option<Box<RawValue>>,
}

impl From<&ClientInfo> for PusherMember {
    fn from(info: &ClientInfo) -> Self {
        let json = info.channel.as_deref();
        let json = json.and_then(|json| serde_json::from_slice(json).ok());
        Self {
            user: info.user.to_string(),
            info: json,
        }
    }
}
