//! The JSON of the admin page.

use serde::{Deserialize, Serialize};

pub use crate::node::NodeInfo;

/// This node and what it does at the moment.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// The node that answers.
    pub node: NodeInfo,
    /// Whether it sends its clients away.
    pub is_draining: bool,
    /// How many nodes there are, this one included.
    pub nodes: usize,
    /// What the link to the broker is: `up` or `deaf`.
    pub link: LinkState,
    /// Publications from the broker a second.
    pub publications_per_s: f64,
    /// Bytes of their payloads a second.
    pub publication_bytes_per_s: f64,
    /// Messages handed to clients a second.
    pub deliveries_per_s: f64,
    /// Bytes handed to clients a second.
    pub delivery_bytes_per_s: f64,
    /// Publications that wait for the workers.
    pub waiting: usize,
    /// Messages that clients missed since the start, since they were too slow.
    pub dropped: u64,
    /// Messages left out since the start, since newer ones took their place.
    pub conflated: u64,
}

/// All nodes that are known.
#[derive(Clone, Debug, Serialize)]
pub struct Nodes {
    /// The one that answers first.
    pub nodes: Vec<NodeInfo>,
}

/// The clients of the node that answers.
#[derive(Clone, Debug, Serialize)]
pub struct Connections {
    /// How many there are that match.
    pub total: usize,
    /// The first of them, in the order asked for.
    pub connections: Vec<Connection>,
}

/// A client.
#[derive(Clone, Debug, Serialize)]
pub struct Connection {
    /// Names the connection.
    pub client: String,
    /// The user; empty if anonymous.
    pub user: String,
    /// The client protocol.
    pub protocol: String,
    /// The transport.
    pub transport: String,
    /// The address, without port; `null` if unknown.
    pub peer: Option<String>,
    /// What the client says that it is.
    pub agent: String,
    /// When it connected.
    pub connected_at_ms: u64,
    /// The age of the oldest message that it has not taken; 0 if it keeps up.
    pub lag_ms: u64,
    /// Bytes that wait for it, in rings and for its socket; an estimate.
    pub pending_bytes: u64,
    /// The channels it is subscribed to, up to 32 of them.
    pub channels: Vec<String>,
    /// How many channels there are.
    pub subscriptions: usize,
    /// The worker that serves it.
    pub worker: u16,
}

/// The channels with subscribers on the node that answers.
#[derive(Clone, Debug, Serialize)]
pub struct Channels {
    /// How many there are that match.
    pub total: usize,
    /// The first of them, in the order asked for.
    pub channels: Vec<Channel>,
}

/// A channel.
#[derive(Clone, Debug, Serialize)]
pub struct Channel {
    /// Its name.
    pub channel: String,
    /// Subscribers on this node.
    pub subscribers: u64,
    /// Publications since it had its first subscriber here.
    pub publications: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Publications a second.
    pub publications_per_s: f64,
    /// Bytes a second.
    pub bytes_per_s: f64,
}

/// What the link to the broker is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkState {
    /// Nothing arrives.
    Deaf,
    /// The last loopback publication came back.
    Up,
}

/// The link to the broker, and what happened to it.
#[derive(Clone, Debug, Serialize)]
pub struct BrokerLink {
    /// The broker: `memory`, `redis` or `nats`.
    pub broker: String,
    /// How the link is.
    pub link: LinkState,
    /// How long the last loopback publication took; `null` while deaf.
    pub round_trip_ms: Option<f64>,
    /// How many gaps there were since the start.
    pub gaps: u64,
    /// How long they lasted together.
    pub gap_time_ms: u64,
    /// The last changes, the newest first, at most 256.
    pub timeline: Vec<Change>,
}

/// A change of the link.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// When it was noticed.
    pub at_ms: u64,
    /// What it was: `up`, `deaf` or `gap`.
    #[serde(flatten)]
    pub change: ChangeKind,
}

/// What may change.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum ChangeKind {
    /// Nothing arrives any more.
    Deaf,
    /// Publications may have been missed.
    Gap {
        /// `link_lost`, `overflow` or `stream_reset`.
        reason: &'static str,
        /// For how long at most.
        lasted_ms: u64,
        /// In how many channels; `null` for all.
        channels: Option<usize>,
    },
    /// Publications arrive.
    Up,
}

/// Whom to disconnect: one client, or all of a user. One of the two has to be there.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Disconnect {
    /// Names the connection.
    pub client: String,
    /// The user.
    pub user: String,
    /// Whether the client may come back; SDKs do, unless told not to.
    pub may_reconnect: bool,
}

/// Whose subscription to end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Unsubscribe {
    /// Names the connection.
    pub client: String,
    /// The user.
    pub user: String,
    /// The channel.
    pub channel: String,
}

/// What to publish.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    /// Where.
    pub channel: String,
    /// The payload, as text.
    pub data: String,
}

/// How many clients it concerned, as far as nodes have answered.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Done {
    /// Clients.
    pub clients: u64,
}

/// A publication in a tail.
#[derive(Clone, Debug, Serialize)]
pub struct TailPublication {
    /// When it came by.
    pub at_ms: u64,
    /// Where it was published; differs from what was asked for if that is a pattern.
    pub channel: String,
    /// Its offset; 0 if it has none.
    pub offset: u64,
    /// How many bytes its payload has.
    pub bytes: usize,
    /// The first 4,096 bytes of it, with `\u{fffd}` for what is no text.
    pub data: String,
    /// Whether there was more.
    pub is_cut: bool,
}

/// Publications left out of a tail.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailSkipped {
    /// How many in the last second.
    pub skipped: u64,
}

/// Publications may have been missed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailGap {
    /// How many; `null` if unknown.
    pub missed: Option<u64>,
}
