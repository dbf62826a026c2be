//! Counters of a hub.

use std::time::Duration;

use crate::{Gap, GapCause};

/// Counters of one hub for metrics. They never decrease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// The number of publications in channels with subscribers.
    pub published_messages: u64,
    /// The size of their payloads in bytes.
    pub published_bytes: u64,
    /// Publications delivered, counted once for each subscriber.
    pub delivered_messages: u64,
    /// Encoded bytes delivered, counted once for each subscriber.
    pub delivered_bytes: u64,
    /// Blocks delivered, counted once for each subscriber.
    pub delivered_blocks: u64,
    /// The sum over all delivered blocks of the time that their oldest publication spent in the
    /// hub.
    pub delivered_delay: Duration,
    /// Blocks encoded.
    pub frozen_blocks: u64,
    /// The size of the encoded blocks in bytes.
    pub frozen_bytes: u64,
    /// Publications that newer ones replaced, counted once for each subscriber.
    pub conflated: u64,
    /// Publications dropped because their position had been seen before.
    pub dropped_duplicate: u64,
    /// Publications that the ring lost before slow subscribers took them, counted once for each
    /// subscriber.
    pub dropped_evicted: u64,
    /// Connections that were to be closed because the client was too slow.
    pub slow_disconnects: u64,
    /// Subscriptions that ended because a publication could not be encoded.
    pub unencodable: u64,
    /// Gaps reported, counted once for each subscriber, in the order of [`GapCause::ALL`].
    pub gaps: [u64; GapCause::ALL.len()],
}

impl Totals {
    pub(crate) fn count_gap(&mut self, gap: Gap) {
        let same = |cause: &GapCause| *cause == gap.cause;
        if let Some(place) = GapCause::ALL.iter().position(same) {
            self.gaps[place] += 1;
        }
        if gap.cause == GapCause::RingEvicted {
            self.dropped_evicted += gap.missed.unwrap_or(0);
        }
    }
}
