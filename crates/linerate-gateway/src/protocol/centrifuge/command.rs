//! What clients say.
//!
//! Texts are as the client sent them; nothing but their encoding was checked.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::StreamPosition;

/// A command of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// Stands in the reply; 0 for what gets none.
    pub id: u32,
    /// What is asked.
    pub request: Request,
}

/// What a command asks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request {
    /// Says who it is; the first command of a connection.
    Connect(Connect),
    /// Asks for what a channel's stream holds.
    History(History),
    /// Asks for an empty reply.
    Ping,
    /// Answers an empty reply of ours. Has no id.
    Pong,
    /// Asks who is in a channel.
    Presence {
        /// Which one.
        channel: String,
    },
    /// Asks how many are in a channel.
    PresenceStats {
        /// Which one.
        channel: String,
    },
    /// Publishes in a channel.
    Publish {
        /// Which one.
        channel: String,
        /// The payload, byte for byte.
        data: Bytes,
    },
    /// Sends a newer token for the connection.
    Refresh {
        /// The token.
        token: String,
    },
    /// Calls a method of the server.
    Rpc {
        /// Which one.
        method: String,
        /// Its argument.
        data: Bytes,
    },
    /// Sends a message that gets no reply. Has no id.
    Send {
        /// The payload.
        data: Bytes,
    },
    /// Sends a newer token for a subscription.
    SubRefresh {
        /// The channel.
        channel: String,
        /// The token.
        token: String,
    },
    /// Subscribes to a channel.
    Subscribe(Subscribe),
    /// Something that is not known here; to be answered with
    /// [`METHOD_NOT_FOUND`](super::ClientError::METHOD_NOT_FOUND).
    Unknown,
    /// Ends a subscription.
    Unsubscribe {
        /// The channel.
        channel: String,
    },
}

impl Request {
    /// Returns what is asked in a word, as metrics have it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::History(_) => "history",
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Presence { .. } => "presence",
            Self::PresenceStats { .. } => "presence_stats",
            Self::Publish { .. } => "publish",
            Self::Refresh { .. } => "refresh",
            Self::Rpc { .. } => "rpc",
            Self::Send { .. } => "send",
            Self::SubRefresh { .. } => "sub_refresh",
            Self::Subscribe(_) => "subscribe",
            Self::Unknown => "unknown",
            Self::Unsubscribe { .. } => "unsubscribe",
        }
    }
}

/// Who a client says that it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Connect {
    /// The token; empty if there is none.
    pub token: String,
    /// What the application adds.
    pub data: Option<Bytes>,
    /// Subscriptions that the server made in an earlier connection, with the positions that they had.
    pub subscriptions: Vec<Subscribe>,
    /// The kind of the client, as `js`.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// How a client wants to be subscribed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subscribe {
    /// The channel.
    pub channel: String,
    /// The token; empty if there is none.
    pub token: String,
    /// What the client has seen, if it wants to recover what followed. An empty epoch is any epoch.
    pub recover: Option<StreamPosition>,
    /// What the application adds.
    pub data: Option<Bytes>,
    /// Whether it wants to be told of gaps.
    pub is_positioned: bool,
    /// Whether it wants to be able to recover later.
    pub is_recoverable: bool,
    /// Whether it wants to be told who comes and goes.
    pub with_join_leave: bool,
    /// Which publications it wants, by their tags.
    pub tags_filter: Option<TagsFilter>,
    /// Which publications it wants, as an expression over their payload. Of ours, not Centrifuge's.
    pub filter: Option<String>,
    /// For how long publications are collected. Of ours.
    pub batch_interval: Option<Duration>,
    /// How newer publications take the place of older ones. Of ours.
    pub conflate: Option<String>,
}

/// A condition on a publication's tags.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TagsFilter {
    /// `and`, `or`, `not` over `nodes`; empty for a comparison.
    pub operation: String,
    /// The tag that is compared.
    pub key: String,
    /// How: `eq`, `neq`, `in`, `nin`, `ex`, `nex`, `sw`, `ew`, `ct`, `lt`, `lte`, `gt`, `gte`.
    pub comparison: String,
    /// With what.
    pub value: String,
    /// With which ones, for `in` and `nin`.
    pub values: Vec<String>,
    /// What is combined.
    pub nodes: Vec<TagsFilter>,
}

/// Which part of a stream a client asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// The channel.
    pub channel: String,
    /// At most so many publications; `None` for all, `Some(0)` for the position only.
    pub limit: Option<usize>,
    /// Only what follows this position. An empty epoch is any epoch.
    pub since: Option<StreamPosition>,
    /// From the newest to the oldest.
    pub is_reverse: bool,
}
