//! What is asked of a broker, and its answers.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ClientInfo, Publication, StreamPosition};

/// What is to be published.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The payload, carried byte for byte.
    pub payload: Bytes,
    /// Who publishes, if a client does. Plain Redis and NATS channels carry payloads only and lose it.
    pub info: Option<ClientInfo>,
    /// What the publisher adds. Lost as `info` is.
    pub tags: Vec<(String, String)>,
    /// A second publication in the channel with the same key within the time that the broker remembers keys
    /// is not published; the answer is that of the first.
    pub idempotency_key: Option<String>,
    /// The options of the channel.
    pub options: StreamOptions,
}

/// Where a publication came to stand.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Published {
    /// Its place in the stream; `None` if the broker does not say at once, as on plain channels.
    pub position: Option<StreamPosition>,
}

/// What a channel keeps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamOptions {
    /// Whether the broker itself keeps a stream, so that any node can recover from it. Otherwise the channel is
    /// plain: payloads as anybody publishes them, positions that are this node's own, and a ring in its memory.
    pub is_durable: bool,
    /// How many publications are kept; 0 keeps none, and publications have no positions.
    pub size_max: usize,
    /// How long they are kept.
    pub ttl: Duration,
}

/// Which part of a stream is asked for.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HistoryRequest {
    /// Only what follows this position. If its epoch is another, nothing is returned but the newest position.
    pub since: Option<StreamPosition>,
    /// At most so many publications; `None` for all, `Some(0)` for the position only.
    pub limit: Option<usize>,
    /// From the newest to the oldest.
    pub is_reverse: bool,
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct History {
    /// The publications, from the oldest to the newest unless asked for in reverse.
    pub publications: Vec<Publication>,
    /// The newest position of the stream.
    pub newest: StreamPosition,
    /// Whether nothing is missing between `since` and the first publication returned: the epoch is the same, and
    /// the stream still reaches back so far. `true` if there was no `since`.
    pub is_contiguous: bool,
}
