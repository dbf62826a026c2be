//! Messages to clients, except for publications on the hot path.

mod phoenix;
mod pusher;
mod socketio;

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo, Payloads, Publication, StreamPosition};

use super::codes::{ClientError, Disconnect, Unsubscribe};
pub(crate) use phoenix::{PhoenixError, PhoenixMessage};
pub(crate) use pusher::{PusherMember, PusherMessage, PusherSubscribeError};
pub(crate) use socketio::SocketIoMessage;

/// A message to one client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum ServerMessage {
    /// Sends something that only Phoenix clients get.
    Phoenix(PhoenixMessage),
    /// Asks for a sign of life, if the client was told to send pongs.
    Ping,
    /// Sends something that is not an answer to a command.
    Push(Push),
    /// Sends something that only Pusher clients get.
    Pusher(PusherMessage),
    /// Answers a command.
    Reply(Reply),
    /// Sends something that only Socket.IO clients get.
    SocketIo(SocketIoMessage),
}

/// The answer to a command.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The ID of the command.
    pub id: u32,
    /// The result of the command.
    pub result: Result<Answer, ClientError>,
}

/// The result of a successful command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum Answer {
    /// The client is connected.
    Connect(Connected),
    /// A part of a stream.
    History(HistoryPage),
    /// An empty answer to a ping.
    Ping,
    /// The clients in the channel.
    Presence(Vec<ClientInfo>),
    /// The number of clients and users in the channel.
    PresenceStats {
        /// The number of connections.
        clients: u32,
        /// The number of distinct users among them.
        users: u32,
    },
    /// The broker has accepted the publication.
    Publish,
    /// What a method of the application returned; empty for nothing.
    Rpc {
        /// The value, byte for byte.
        data: Bytes,
    },
    /// The connection's new token was accepted.
    Refresh(Refreshed),
    /// The subscription's new token was accepted.
    SubRefresh {
        /// How long the token is valid; `None` if it never expires.
        ttl: Option<Duration>,
    },
    /// The client is subscribed.
    Subscribe(Subscribed),
    /// The subscription has ended.
    Unsubscribe,
}

/// A message that is not an answer to a command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum Push {
    /// The connection is about to be closed; for streams over HTTP, which have no Close frame.
    Disconnect(Disconnect),
    /// A client has joined a channel.
    Join {
        /// The channel.
        channel: ChannelName,
        /// The client.
        info: ClientInfo,
    },
    /// A client has left a channel.
    Leave {
        /// The channel.
        channel: ChannelName,
        /// The client.
        info: ClientInfo,
    },
    /// The server has subscribed the client.
    Subscribe {
        /// The channel.
        channel: ChannelName,
        /// The parameters of the subscription.
        subscribed: Subscribed,
    },
    /// The server has ended a subscription.
    Unsubscribe {
        /// The channel.
        channel: ChannelName,
        /// The reason.
        unsubscribe: Unsubscribe,
    },
}

/// The parameters of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connected {
    /// The ID of the connection, unique in the cluster.
    pub client: String,
    /// The name and version of the server.
    pub version: String,
    /// How long the token is valid; `None` if it never expires.
    pub ttl: Option<Duration>,
    /// Data from the application.
    pub data: Option<Bytes>,
    /// Subscriptions that the server has made.
    pub subscriptions: Vec<(ChannelName, Subscribed)>,
    /// The interval between pings of the server, in whole seconds on the wire; `None` if it sends
    /// none.
    pub ping_interval: Option<Duration>,
    /// True if the client must answer pings.
    pub wants_pong: bool,
    /// The ID of the stream for `/emulation`.
    pub session: String,
    /// The ID of this node for `/emulation`.
    pub node: String,
}

/// The parameters of a subscription.
#[derive(Clone, Debug, Default)]
pub(crate) struct Subscribed {
    /// How long the token is valid; `None` if it never expires.
    pub ttl: Option<Duration>,
    /// The newest position of the stream; everything that follows is pushed.
    pub position: Option<StreamPosition>,
    /// True if the client can recover from a position later.
    pub is_recoverable: bool,
    /// True if the client is told of gaps.
    pub is_positioned: bool,
    /// Data from the application.
    pub data: Option<Bytes>,
    /// The result of the recovery, if one was requested.
    pub recovery: Option<Recovery>,
    /// True if publications, also those in this reply, may be deltas from those before them.
    pub with_deltas: bool,
    /// The ID of the channel in native blocks.
    pub channel_id: Option<u32>,
}

impl Subscribed {
    /// Returns how the payloads in the reply are written.
    pub(super) const fn payloads(&self) -> Payloads<'_> {
        match self.with_deltas {
            true => Payloads::Deltas { previous: None },
            false => Payloads::Full,
        }
    }
}

/// The result of a recovery.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recovery {
    /// True if nothing is missing between the client's position and the first of `publications`, or
    /// the first live one.
    pub is_recovered: bool,
    /// The missed publications, oldest first.
    pub publications: Vec<Publication>,
}

/// The answer to a connection's new token.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Refreshed {
    /// The ID of the connection.
    pub client: String,
    /// The name and version of the server.
    pub version: String,
    /// How long the token is valid; `None` if it never expires.
    pub ttl: Option<Duration>,
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub(crate) struct HistoryPage {
    /// The publications, in the requested order.
    pub publications: Vec<Publication>,
    /// The newest position of the stream.
    pub newest: StreamPosition,
}

/// Rounds up, so that the result is 0 only for a zero duration.
pub(super) fn whole_seconds(duration: Duration) -> u32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    u32::try_from(seconds).unwrap_or(u32::MAX)
}
