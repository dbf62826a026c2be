//! The JSON of the admin page.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use crate::node::NodeInfo;

/// This node and its current load.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Overview {
    /// The node that replies.
    pub node: NodeInfo,
    /// True if the node is draining: it disconnects its clients.
    pub is_draining: bool,
    /// Number of nodes, including this one.
    pub nodes: usize,
    /// State of the link to the broker: `up` or `deaf`.
    pub link: LinkState,
    /// Publications per second from the broker.
    pub publications_per_s: f32,
    /// Bytes per second of their payloads.
    pub publication_bytes_per_s: f32,
    /// Messages per second delivered to clients.
    pub deliveries_per_s: f32,
    /// Bytes per second delivered to clients.
    pub delivery_bytes_per_s: f32,
    /// Number of publications queued for the workers.
    pub waiting: usize,
    /// Number of messages that slow clients have missed since the start.
    pub dropped: u64,
    /// Number of messages replaced by newer ones since the start.
    pub conflated: u64,
}

/// The figures of this node over time: a list for each figure, all of the same length, with one
/// value per second or minute, oldest first. While the process was suspended, there are none.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Series {
    /// Length of the intervals in seconds: 1 or 60.
    pub step_s: u32,
    /// When each interval began, in milliseconds since 1970; the last minute is not over.
    pub at_ms: Vec<u64>,
    /// Publications per second from the broker.
    pub publications_per_s: Vec<f32>,
    /// Bytes per second of their payloads.
    pub publication_bytes_per_s: Vec<f32>,
    /// Messages per second delivered to clients.
    pub deliveries_per_s: Vec<f32>,
    /// Bytes per second delivered to clients.
    pub delivery_bytes_per_s: Vec<f32>,
    /// The 99th percentile of the time from the arrival of a publication until its delivery, in
    /// milliseconds, over all deliveries of the interval; `null` if there were none. It is
    /// interpolated between the bounds of a histogram, the last of which is 10 s.
    pub delay_p99_ms: Vec<f32>,
    /// Number of messages that slow clients have missed.
    pub dropped: Vec<u32>,
    /// Number of gaps that the broker reported.
    pub gaps: Vec<u32>,
    /// Seconds during which nothing arrived from the broker.
    pub deaf_s: Vec<f32>,
    /// Maximum number of clients.
    pub clients: Vec<u32>,
    /// Maximum of the memory budget in use, in bytes.
    pub memory_bytes: Vec<u64>,
    /// Maximum resident memory of the process, in bytes; 0 if unknown.
    pub resident_bytes: Vec<u64>,
}

/// The configuration of the node that replies, without secrets. After a reload, keys that need a
/// restart have their new values, which are not in force yet.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Settings {
    /// Every key that has a value, in order.
    pub settings: Vec<Setting>,
}

/// A setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setting {
    /// The path of its key, such as `server.listen` or `namespace[0].name`.
    pub key: String,
    /// The value as JSON. Secrets are `(secret)`, and URLs are shortened.
    pub value: String,
    /// The value in force, if that depends on the machine or on other keys.
    pub resolved: Option<String>,
    /// The default; `null` if the key has none.
    pub default: Option<String>,
    /// True if the value was set and differs from the default.
    pub is_changed: bool,
    /// Where the value was set: `default`, or a file, an environment variable or a flag.
    pub source: String,
}

/// All known nodes.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Nodes {
    /// The nodes; the one that replies is the first.
    pub nodes: Vec<NodeInfo>,
}

/// The clients of the node that replies.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Connections {
    /// Number of matching clients.
    pub total: usize,
    /// The first of them, in the requested order.
    pub connections: Vec<Connection>,
}

/// A client.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Connection {
    /// ID of the connection.
    pub client: String,
    /// The user; empty if anonymous.
    pub user: String,
    /// The client protocol.
    pub protocol: String,
    /// The transport.
    pub transport: String,
    /// The address, without port; `null` if unknown.
    pub peer: Option<String>,
    /// Name and version that the client reports.
    pub agent: String,
    /// When it connected, in milliseconds since 1970.
    pub connected_at_ms: u64,
    /// Age of the oldest message not yet sent to it, in milliseconds; 0 if it keeps up.
    pub lag_ms: u64,
    /// Estimated number of bytes that wait for it, in rings and for its socket.
    pub pending_bytes: u64,
    /// Up to 32 of the channels that it is subscribed to.
    pub channels: Vec<String>,
    /// Number of its subscriptions.
    pub subscriptions: usize,
    /// Index of the worker that serves it.
    pub worker: u16,
}

/// The channels with subscribers on the node that replies.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Channels {
    /// Number of matching channels.
    pub total: usize,
    /// The first of them, in the requested order.
    pub channels: Vec<Channel>,
}

/// A channel.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Channel {
    /// Its name.
    pub channel: String,
    /// Number of subscribers on this node.
    pub subscribers: u64,
    /// Number of publications that arrived while it had subscribers on this node. They are
    /// forgotten when its subscribers have left, and then those of 1,024 other channels.
    pub publications: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Publications per second.
    pub publications_per_s: f64,
    /// Payload bytes per second.
    pub bytes_per_s: f64,
}

/// The state of the link to the broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LinkState {
    /// Nothing arrives from the broker.
    Deaf,
    /// The last loopback publication came back.
    Up,
}

/// The state and recent history of the link to the broker.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BrokerLink {
    /// The name of the broker, such as `redis`.
    pub broker: String,
    /// State of the link.
    pub link: LinkState,
    /// Round-trip time of the last loopback publication, in milliseconds; `null` while deaf.
    pub round_trip_ms: Option<f64>,
    /// Number of gaps since the start.
    pub gaps: u64,
    /// Total duration of these gaps, in milliseconds.
    pub gap_time_ms: u64,
    /// Up to 256 of the latest changes, newest first.
    pub timeline: Vec<Change>,
}

/// A change of the link's state, or a gap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Change {
    /// When it was noticed, in milliseconds since 1970.
    pub at_ms: u64,
    /// The kind of change: `up`, `deaf` or `gap`.
    #[serde(flatten)]
    pub change: ChangeKind,
}

/// The kind of a change.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub(crate) enum ChangeKind {
    /// Nothing arrives from the broker any more.
    Deaf,
    /// Publications may have been missed.
    Gap {
        /// `link_lost`, `overflow`, `oversized`, `stream_reset` or `other`.
        reason: &'static str,
        /// Maximum duration of the gap, in milliseconds.
        lasted_ms: u64,
        /// Number of affected channels; `null` for all.
        channels: Option<usize>,
    },
    /// Publications arrive again.
    Up,
}

/// The connections to close: one client, or all of a user. One of the two is required.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Disconnect {
    /// ID of the connection.
    pub client: String,
    /// The user.
    pub user: String,
    /// True if the client may reconnect; SDKs do so automatically.
    pub may_reconnect: bool,
}

/// The subscriptions to end.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Unsubscribe {
    /// ID of the connection.
    pub client: String,
    /// The user.
    pub user: String,
    /// The channel.
    pub channel: String,
}

/// A publication request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Publish {
    /// The channel.
    pub channel: String,
    /// The payload, as text.
    pub data: String,
    /// Tags that are delivered with the publication.
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
}

/// Which tokens to create.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MakeTokens {
    /// The channel to which they give access.
    pub channel: String,
}

/// Tokens with which the channel page tries a channel.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Tokens {
    /// The user that the tokens are for; always the same one.
    pub user: &'static str,
    /// How long the tokens are valid, in seconds.
    pub expires_in_s: u64,
    /// A token for a connection.
    pub connection: String,
    /// A token for subscribing to the channel.
    pub channel: String,
    /// A token for a connection that the server subscribes to the channel.
    pub subscribed: String,
}

/// The number of affected clients on all nodes that replied in time.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct AffectedClients {
    /// Number of clients.
    pub clients: u64,
}

/// A publication in a tail.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TailPublication {
    /// When it arrived, in milliseconds since 1970.
    pub at_ms: u64,
    /// The channel it was published in; differs from the requested one if that is a pattern.
    pub channel: String,
    /// Its offset; 0 if it has none.
    pub offset: u64,
    /// Size of the payload, in bytes.
    pub bytes: usize,
    /// The first 4,096 bytes of the payload, with `\u{fffd}` in place of invalid UTF-8.
    pub data: String,
    /// True if the payload is longer than `data`.
    pub is_cut: bool,
}

/// Publications that a tail has skipped.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TailSkipped {
    /// Number of publications skipped in the last second.
    pub skipped: u64,
}

/// Publications may have been missed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TailGap {
    /// Number of missed publications; `null` if unknown.
    pub missed: Option<u64>,
}
