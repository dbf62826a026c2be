//! What nodes and servers of the broker send to each other.

use bytes::Bytes;
use linerate_broker::{Beat, History, HistoryRequest};
use linerate_hub::{ChannelName, Publication, StreamPosition};

/// A connection of a node to a server. Numbers are never used again.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Connection {
    pub(super) number: u64,
    pub(super) node: usize,
    pub(super) server: usize,
}

/// What travels on a connection.
#[derive(Debug)]
pub(super) enum Packet {
    ToNode(Message),
    ToServer { call: u64, request: Request },
}

/// A request of a node.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Beat { node: String, details: Bytes },
    Close,
    Control { to: Option<String>, message: Bytes },
    Deregister { node: String },
    Details,
    History(ChannelName, HistoryRequest),
    Listen { node: String },
    Nodes,
    Ping,
    Publish(ChannelName),
    Subscribe(ChannelName),
    Unsubscribe(ChannelName),
}

/// A message to a node.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Answer(u64, Answer),
    /// The server does not know the connection, or ends it.
    Closed,
    Control(Bytes),
    Publication(ChannelName, Publication),
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    Beat(Beat),
    Details(Vec<Bytes>),
    Done,
    History(History),
    Nodes(Vec<String>),
    Position(StreamPosition),
}
