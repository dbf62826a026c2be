//! Who uses memory, by name.

use std::fmt;

/// A kind of buffer that a peer can grow.
///
/// Complete: every consumer has a counter of its own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Consumer {
    /// Bytes that wait for the sockets of clients.
    Backlogs,
    /// Bodies of requests to the API and of sessions over HTTP.
    Bodies,
    /// Publications on their way from the broker to the hubs.
    Deliveries,
    /// Histories that are being read, and the replies that carry them.
    Histories,
    /// Frames and flow-control windows of HTTP/2 connections.
    Http2Windows,
    /// Flow-control windows of HTTP/3 connections.
    Http3Windows,
    /// Windows of compressed connections and what was inflated.
    Inflaters,
    /// Lines and tables of followed logs.
    Logs,
    /// Messages being received, and those that wait to be handled.
    Messages,
    /// Buffers kept for reuse.
    Pools,
    /// Who is present in channels.
    Presence,
    /// Publications that the hubs keep for subscribers who have not read them.
    Rings,
    /// Publications that the node keeps as the history of plain channels.
    Sequencers,
    /// Uploaded logs, in all their stages.
    Uploads,
}

impl Consumer {
    /// All consumers, in the order of their names.
    pub const ALL: [Self; 14] = [
        Self::Backlogs,
        Self::Bodies,
        Self::Deliveries,
        Self::Histories,
        Self::Http2Windows,
        Self::Http3Windows,
        Self::Inflaters,
        Self::Logs,
        Self::Messages,
        Self::Pools,
        Self::Presence,
        Self::Rings,
        Self::Sequencers,
        Self::Uploads,
    ];

    /// Returns the name for metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backlogs => "backlogs",
            Self::Bodies => "bodies",
            Self::Deliveries => "deliveries",
            Self::Histories => "histories",
            Self::Http2Windows => "http2_windows",
            Self::Http3Windows => "http3_windows",
            Self::Inflaters => "inflaters",
            Self::Logs => "logs",
            Self::Messages => "messages",
            Self::Pools => "pools",
            Self::Presence => "presence",
            Self::Rings => "rings",
            Self::Sequencers => "sequencers",
            Self::Uploads => "uploads",
        }
    }

    /// Returns how many percent of the budget this consumer may use.
    ///
    /// Uploads are a convenience: half of the budget always remains for clients, and uploads alone can't make the
    /// server refuse connections.
    pub const fn share_percent(self) -> u64 {
        match self {
            Self::Uploads => 50,
            _ => 100,
        }
    }
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Consumer;

    #[test]
    fn every_consumer_has_its_place_and_its_name() {
        for (place, consumer) in Consumer::ALL.into_iter().enumerate() {
            assert_eq!(consumer as usize, place);
        }
        assert!(Consumer::ALL.is_sorted_by_key(|consumer| consumer.name()));
    }
}
