//! What a hub has done so far.

use std::time::Duration;

use crate::{Gap, GapCause};

/// Counters of one hub, for metrics; they only grow.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Publications in channels with subscribers.
    pub published_messages: u64,
    /// The bytes of their payloads.
    pub published_bytes: u64,
    /// Publications given out, once for each subscriber.
    pub delivered_messages: u64,
    /// Encoded bytes given out, once for each subscriber.
    pub delivered_bytes: u64,
    /// Blocks given out, once for each subscriber.
    pub delivered_blocks: u64,
    /// For all of these, how long their oldest publication was in the hub.
    pub delivered_delay: Duration,
    /// Blocks encoded.
    pub frozen_blocks: u64,
    /// The bytes of blocks encoded.
    pub frozen_bytes: u64,
    /// Publications that newer ones replaced, once for each subscriber.
    pub conflated: u64,
    /// Publications left out because their position had been seen before.
    pub dropped_duplicate: u64,
    /// Publications that the ring lost before slow subscribers took them, once for each subscriber.
    pub dropped_evicted: u64,
    /// Connections that are to end, since they were too slow.
    pub slow_disconnects: u64,
    /// Subscriptions that ended, since a publication could not be encoded.
    pub unencodable: u64,
    /// Gaps told, once for each subscriber, in the order of [`GapCause::ALL`].
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
