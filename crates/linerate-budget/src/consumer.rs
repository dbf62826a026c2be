//! The kinds of memory that the budget counts.

use std::fmt;

/// A kind of memory that a peer can make grow.
///
/// The enum is exhaustive on purpose: every consumer has its own counter.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(u8)]
pub enum Consumer {
    /// Bytes that wait to be written to the sockets of clients.
    Backlogs,
    /// Publications as encoded for subscribers.
    Blocks,
    /// Bodies of HTTP requests.
    Bodies,
    /// The fixed cost of a connection, before it sends anything.
    Connections,
    /// Publications that were read from a stream for a subscriber or the API.
    Histories,
    /// Decompression windows of compressed connections.
    Inflaters,
    /// Messages that are being received or wait to be handled.
    Messages,
    /// Publications from the broker: in queues, rings and the node's own histories.
    Publications,
    /// Subscriptions and their presence information.
    Subscriptions,
    /// Figures and lines of logs that the server follows.
    Tails,
    /// Uploaded logs, in all stages of processing.
    Uploads,
}

impl Consumer {
    /// All consumers, sorted by name.
    pub const ALL: [Self; 11] = [
        Self::Backlogs,
        Self::Blocks,
        Self::Bodies,
        Self::Connections,
        Self::Histories,
        Self::Inflaters,
        Self::Messages,
        Self::Publications,
        Self::Subscriptions,
        Self::Tails,
        Self::Uploads,
    ];

    /// Returns the name that metrics and logs use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Backlogs => "backlogs",
            Self::Blocks => "blocks",
            Self::Bodies => "bodies",
            Self::Connections => "connections",
            Self::Histories => "histories",
            Self::Inflaters => "inflaters",
            Self::Messages => "messages",
            Self::Publications => "publications",
            Self::Subscriptions => "subscriptions",
            Self::Tails => "tails",
            Self::Uploads => "uploads",
        }
    }

    /// Returns the consumer with the largest part, and the sum of all parts.
    pub fn largest_of<const N: usize>(parts: [(Self, u64); N]) -> (Self, u64) {
        let bytes = parts.iter().map(|(_, bytes)| bytes).sum();
        let largest = parts.into_iter().max_by_key(|(_, bytes)| *bytes);
        let consumer = largest.map_or(Self::Connections, |(consumer, _)| consumer);
        (consumer, bytes)
    }

    /// Returns the percentage of the budget that this consumer may use.
    ///
    /// Uploads are a convenience: half of the budget always remains for clients, and uploads alone
    /// cannot make the server refuse connections.
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
    fn every_consumer_has_an_index_and_a_name() {
        for (place, consumer) in Consumer::ALL.into_iter().enumerate() {
            assert_eq!(consumer as usize, place);
        }
        assert!(Consumer::ALL.is_sorted_by_key(|consumer| consumer.name()));
    }

    #[test]
    fn a_holder_is_named_by_what_it_takes_most_of() {
        let parts = |backlog, received| {
            Consumer::largest_of([
                (Consumer::Backlogs, backlog),
                (Consumer::Messages, received),
            ])
        };
        assert_eq!(parts(5, 3), (Consumer::Backlogs, 8));
        assert_eq!(parts(3, 5), (Consumer::Messages, 8));
    }
}
