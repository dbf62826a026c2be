//! The commands of clients.
//!
//! Strings are as the client sent them; only their encoding has been checked.

mod phoenix;
mod pusher;
mod socketio;

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::StreamPosition;
use serde::{Deserialize, Serialize};

pub(crate) use phoenix::{PhoenixAction, PhoenixPlace, PhoenixRef, PhoenixRequest};
pub(crate) use pusher::PusherRequest;
pub(crate) use socketio::{SocketIoEvent, SocketIoRequest};

/// A command from a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Command {
    /// The ID that the reply repeats; 0 for commands without a reply.
    pub id: u32,
    /// The requested operation.
    pub request: Request,
}

impl Command {
    /// Returns the memory that the command takes, in bytes; small parts are left out.
    pub(crate) fn memory_bytes(&self) -> usize {
        let of_subscribe = |wanted: &Subscribe| {
            let texts = [&wanted.channel, &wanted.token].map(String::len);
            let data = wanted.data.as_ref().map_or(0, Bytes::len);
            let filter = wanted.filter.as_ref().map_or(0, String::len);
            size_of::<Subscribe>() + texts.iter().sum::<usize>() + data + filter
        };
        let heap = match &self.request {
            Request::Connect(connect) => {
                let before = connect.subscriptions.iter().map(of_subscribe);
                let data = connect.data.as_ref().map_or(0, Bytes::len);
                connect.token.len() + data + before.sum::<usize>()
            }
            Request::Phoenix(request) => request.memory_bytes(),
            Request::Publish { channel, data } => channel.len() + data.len(),
            Request::Refresh { token } => token.len(),
            Request::Rpc { method, data } => method.len() + data.len(),
            Request::Send { data } => data.len(),
            Request::SocketIo(request) => request.memory_bytes(),
            Request::SubRefresh { channel, token } => channel.len() + token.len(),
            Request::Subscribe(wanted) => of_subscribe(wanted),
            _ => 0,
        };
        size_of::<Self>() + heap
    }
}

/// The requested operation of a command.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub(crate) enum Request {
    /// Identifies the client; the first command of a connection.
    Connect(Connect),
    /// Requests publications from a channel's history.
    History(History),
    /// Requests something that only Phoenix clients request. Has no ID.
    Phoenix(Box<PhoenixRequest>),
    /// Requests an empty reply.
    Ping,
    /// Answers a ping of the server. Has no ID.
    Pong,
    /// Requests the list of clients in a channel.
    Presence {
        /// The channel.
        channel: String,
    },
    /// Requests the number of clients in a channel.
    PresenceStats {
        /// The channel.
        channel: String,
    },
    /// Publishes to a channel.
    Publish {
        /// The channel.
        channel: String,
        /// The payload, byte for byte.
        data: Bytes,
    },
    /// Requests something that only Pusher clients request. Has no ID.
    Pusher(Box<PusherRequest>),
    /// Sends a newer token for the connection.
    Refresh {
        /// The token.
        token: String,
    },
    /// Calls a method of the server.
    Rpc {
        /// The name of the method.
        method: String,
        /// Its argument.
        data: Bytes,
    },
    /// Sends a message that gets no reply. Has no ID.
    Send {
        /// The payload.
        data: Bytes,
    },
    /// Requests something that only Socket.IO clients request. Has no ID.
    SocketIo(Box<SocketIoRequest>),
    /// Sends a newer token for a subscription.
    SubRefresh {
        /// The channel.
        channel: String,
        /// The token.
        token: String,
    },
    /// Subscribes to a channel.
    Subscribe(Subscribe),
    /// An unknown command, to be answered with
    /// [`METHOD_NOT_FOUND`](super::codes::ClientError::METHOD_NOT_FOUND).
    Unknown,
    /// Ends a subscription.
    Unsubscribe {
        /// The channel.
        channel: String,
    },
}

impl Request {
    /// Returns the name of the operation as used in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::History(_) => "history",
            Self::Phoenix(request) => request.name(),
            Self::Ping => "ping",
            Self::Pong => "pong",
            Self::Presence { .. } => "presence",
            Self::PresenceStats { .. } => "presence_stats",
            Self::Publish { .. } => "publish",
            Self::Pusher(request) => request.name(),
            Self::Refresh { .. } => "refresh",
            Self::Rpc { .. } => "rpc",
            Self::Send { .. } => "send",
            Self::SocketIo(request) => request.name(),
            Self::SubRefresh { .. } => "sub_refresh",
            Self::Subscribe(_) => "subscribe",
            Self::Unknown => "unknown",
            Self::Unsubscribe { .. } => "unsubscribe",
        }
    }

    /// Returns the channel, if the request is a subscription.
    pub(crate) fn subscribed_channel(&self) -> Option<&str> {
        match self {
            Self::Phoenix(request) => request.subscribed_channel(),
            Self::Pusher(request) => request.subscribed_channel(),
            Self::Subscribe(wanted) => Some(&wanted.channel),
            _ => None,
        }
    }
}

/// The parameters of a connect command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Connect {
    /// The token; empty if there is none.
    pub token: String,
    /// Data for the application.
    pub data: Option<Bytes>,
    /// Server-side subscriptions of an earlier connection, with their last positions.
    pub subscriptions: Vec<Subscribe>,
    /// The name of the client's SDK, such as `js`.
    pub name: String,
    /// The version of the client's SDK.
    pub version: String,
    /// The namespace that a Socket.IO client connects to, such as `/`.
    pub namespace: Option<String>,
}

/// The parameters of a subscribe command.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Subscribe {
    /// The channel.
    pub channel: String,
    /// The token; empty if there is none.
    pub token: String,
    /// The client's last position, if it wants to recover what followed. An empty epoch matches any
    /// epoch.
    pub recover: Option<StreamPosition>,
    /// Data for the application.
    pub data: Option<Bytes>,
    /// True if the client wants to be told of gaps.
    pub is_positioned: bool,
    /// True if the client wants to be able to recover later.
    pub is_recoverable: bool,
    /// True if the client wants to be told when others join or leave.
    pub with_join_leave: bool,
    /// True if the client can apply deltas in Fossil's format.
    pub with_deltas: bool,
    /// True if the client knows channels by the IDs that replies give them.
    pub with_channel_id: bool,
    /// Selects publications by their tags.
    pub tags_filter: Option<TagsFilter>,
    /// Selects publications by an expression over their payload. An extension of linerate, not part
    /// of Centrifuge.
    pub filter: Option<String>,
    /// How long publications are collected into a batch. An extension of linerate.
    pub batch_interval: Option<Duration>,
    /// How newer publications replace older ones. An extension of linerate.
    pub conflate: Option<String>,
}

/// A condition on a publication's tags.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(crate) struct TagsFilter {
    /// `and`, `or`, `not` over `nodes`; empty for a comparison.
    pub operation: String,
    /// The tag that is compared.
    pub key: String,
    /// The operator: `eq`, `neq`, `in`, `nin`, `ex`, `nex`, `sw`, `ew`, `ct`, `lt`, `lte`, `gt`,
    /// `gte`.
    pub comparison: String,
    /// The value to compare with.
    pub value: String,
    /// The values to compare with, for `in` and `nin`.
    pub values: Vec<String>,
    /// The conditions to combine.
    pub nodes: Vec<TagsFilter>,
}

/// The part of a stream that a client requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    /// The channel.
    pub channel: String,
    /// The maximum number of publications; `None` for all, `Some(0)` for the position only.
    pub limit: Option<usize>,
    /// Return only what follows this position. An empty epoch matches any epoch.
    pub since: Option<StreamPosition>,
    /// True for newest first.
    pub is_reverse: bool,
}
