//! What clients hear, besides publications on the hot path.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo, Publication, StreamPosition};

use super::{ClientError, Disconnect, Unsubscribe};

/// Something for one client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerMessage {
    /// Asks for a sign of life, if the client was told to answer.
    Ping,
    /// Tells what nobody asked for.
    Push(Push),
    /// Answers a command.
    Reply(Reply),
}

/// The answer to a command.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The command's.
    pub id: u32,
    /// What came of it.
    pub result: Result<Answer, ClientError>,
}

/// What came of a command.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The client is connected.
    Connect(Connected),
    /// A part of a stream.
    History(HistoryPage),
    /// Nothing, as asked.
    Ping,
    /// Who is in the channel.
    Presence(Vec<ClientInfo>),
    /// How many are in the channel.
    PresenceStats {
        /// Connections.
        clients: u32,
        /// Different users among them.
        users: u32,
    },
    /// The broker has taken it.
    Publish,
    /// The connection's token was taken.
    Refresh(Refreshed),
    /// What the method returned.
    Rpc {
        /// The result.
        data: Bytes,
    },
    /// The subscription's token was taken.
    SubRefresh {
        /// For how long it is good; `None` for ever.
        ttl: Option<Duration>,
    },
    /// The client is subscribed.
    Subscribe(Subscribed),
    /// The subscription has ended.
    Unsubscribe,
}

/// What nobody asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Push {
    /// The connection is about to end; for streams over HTTP, which have no Close frame.
    Disconnect(Disconnect),
    /// Somebody has come into a channel.
    Join {
        /// The channel.
        channel: ChannelName,
        /// Who.
        info: ClientInfo,
    },
    /// Somebody has left a channel.
    Leave {
        /// The channel.
        channel: ChannelName,
        /// Who.
        info: ClientInfo,
    },
    /// A message to this client alone.
    Message {
        /// The payload.
        data: Bytes,
    },
    /// A publication outside of the hot path.
    Publication {
        /// The channel that was subscribed.
        channel: ChannelName,
        /// What was published.
        publication: Publication,
    },
    /// The server has subscribed the client.
    Subscribe {
        /// The channel.
        channel: ChannelName,
        /// How.
        subscribed: Subscribed,
    },
    /// The server has ended a subscription.
    Unsubscribe {
        /// The channel.
        channel: ChannelName,
        /// Why.
        unsubscribe: Unsubscribe,
    },
}

/// How a client is connected.
#[derive(Clone, Debug, Default)]
pub struct Connected {
    /// The connection, unique in the cluster.
    pub client: String,
    /// Our name and version.
    pub version: String,
    /// For how long the token is good; `None` for ever.
    pub ttl: Option<Duration>,
    /// What the application adds.
    pub data: Option<Bytes>,
    /// Subscriptions that the server has made.
    pub subscriptions: Vec<(ChannelName, Subscribed)>,
    /// How often we ping, in whole seconds on the wire; `None` if never.
    pub ping_interval: Option<Duration>,
    /// Whether pings are to be answered.
    pub wants_pong: bool,
    /// Names the stream to `/emulation`.
    pub session: String,
    /// Names this node to `/emulation`.
    pub node: String,
}

/// How a client is subscribed.
#[derive(Clone, Debug, Default)]
pub struct Subscribed {
    /// For how long the token is good; `None` for ever.
    pub ttl: Option<Duration>,
    /// The newest position; what follows is pushed.
    pub position: Option<StreamPosition>,
    /// Whether the client can recover from a position later.
    pub is_recoverable: bool,
    /// Whether the client is told of gaps.
    pub is_positioned: bool,
    /// What the application adds.
    pub data: Option<Bytes>,
    /// What came of recovering, if it was asked for.
    pub recovery: Option<Recovery>,
    /// The number that stands for the channel in native blocks.
    pub channel_id: Option<u32>,
}

/// What came of recovering.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// Whether nothing is missing between the client's position and the first of `publications`, or the live ones.
    pub is_recovered: bool,
    /// What was missed, oldest first.
    pub publications: Vec<Publication>,
}

/// How long a connection's newer token is good.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Refreshed {
    /// The connection.
    pub client: String,
    /// Our name and version.
    pub version: String,
    /// For how long; `None` for ever.
    pub ttl: Option<Duration>,
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct HistoryPage {
    /// The publications in the order asked for.
    pub publications: Vec<Publication>,
    /// The newest position of the stream.
    pub newest: StreamPosition,
}
