//! Requests to a broker, and its answers.

use std::time::Duration;

use bytes::Bytes;
use linerate_hub::{ClientInfo, Publication, StreamPosition};

/// A publication to publish.
#[derive(Clone, Debug)]
pub struct Publish {
    /// The payload, which is carried unchanged.
    pub payload: Bytes,
    /// The client that publishes, if a client does. Lost in plain channels of brokers, unless
    /// there are tags.
    pub info: Option<ClientInfo>,
    /// Tags that the publisher adds; lost in subscriptions to patterns of some brokers. In plain
    /// channels of brokers in which messages are only payloads, such a publication has an envelope
    /// that other programs see.
    pub tags: Vec<(String, String)>,
    /// Makes the publication idempotent: a second publication with the same key in the same
    /// channel, within the time that the broker remembers keys, is not published and gets the
    /// answer of the first.
    pub idempotency_key: Option<String>,
    /// The options of the channel.
    pub options: StreamOptions,
}

/// The position of a publication.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Published {
    /// Its position in the stream. `None` if the broker does not know it immediately, as on plain
    /// channels.
    pub position: Option<StreamPosition>,
}

/// What a channel stores.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamOptions {
    /// True if the broker itself stores a stream, so that any node can recover from it. Otherwise
    /// the channel is plain: it carries payloads as any client of the broker publishes them, its
    /// positions are this node's own, and its history is a ring in this node's memory.
    pub is_durable: bool,
    /// The number of publications that are stored. With 0, none are stored, and publications have
    /// no positions.
    pub size_max: usize,
    /// How long they are stored.
    pub ttl: Duration,
}

impl StreamOptions {
    /// Returns whether the broker itself stores a stream.
    pub(crate) fn has_stream(&self) -> bool {
        self.is_durable && self.size_max > 0
    }
}

/// The part of a stream to return.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HistoryRequest {
    /// Return only publications after this position. If its epoch is not the current one, only the
    /// newest position is returned.
    pub since: Option<StreamPosition>,
    /// The maximum number of publications. `None` for all, `Some(0)` for the newest position only.
    pub limit: Option<usize>,
    /// True to return publications from the newest to the oldest.
    pub is_reverse: bool,
}

/// A part of a stream.
#[derive(Clone, Debug)]
pub struct History {
    /// The publications, from the oldest to the newest unless the request was for the reverse
    /// order.
    pub publications: Vec<Publication>,
    /// The newest position of the stream.
    pub newest: StreamPosition,
    /// True if no publication is missing between `since` and the first one returned: the epoch is
    /// the same, and the stream still reaches back far enough. Also true if there was no `since`.
    pub is_contiguous: bool,
}
