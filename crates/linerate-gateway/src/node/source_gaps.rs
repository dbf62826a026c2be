//! Gaps of sources, across which clients cannot recover.
//!
//! A stream contains everything that was published, so it does not show that a source has lost
//! changes. The node therefore remembers for which channels that happened, and answers clients that
//! recover from a position before it that it cannot recover.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use linerate_hub::{ChannelName, StreamPosition};
use parking_lot::Mutex;

use crate::channel_pattern::matches;

/// Maximum number of gaps. Beyond it, the oldest one is forgotten.
const GAPS_MAX: usize = 64;

/// Maximum number of channels of a gap whose positions are remembered. In further ones, clients
/// cannot recover until the gap is forgotten.
const CHANNELS_MAX: usize = 100_000;

/// The gaps that are remembered.
#[derive(Debug, Default)]
pub(crate) struct SourceGaps {
    gaps: Mutex<Vec<SourceGap>>,
    /// True if there may be any, so that subscribing usually takes no lock.
    any: AtomicBool,
}

#[derive(Debug)]
struct SourceGap {
    patterns: Vec<String>,
    until: Instant,
    /// For channels in which a client has recovered since: where the stream was at that time. The
    /// gap is before this position.
    before: HashMap<ChannelName, StreamPosition>,
}

impl SourceGaps {
    /// Remembers a gap in the channels that match one of `patterns`, for as long as streams may
    /// contain what is older.
    pub(super) fn record(&self, patterns: Vec<String>, now: Instant, kept: Duration) {
        let mut gaps = self.gaps.lock();
        gaps.retain(|gap| gap.until > now && gap.patterns != patterns);
        if gaps.len() >= GAPS_MAX {
            gaps.remove(0);
        }
        gaps.push(SourceGap {
            patterns,
            until: now + kept,
            before: HashMap::new(),
        });
        self.any.store(true, Ordering::Release);
    }

    /// Returns whether a gap may be between a position in a channel and the newest one. The first
    /// time after a gap, it is, because the position may be older.
    pub(super) fn separate(
        &self,
        channel: &ChannelName,
        since: &StreamPosition,
        newest: &StreamPosition,
        now: Instant,
    ) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let mut gaps = self.gaps.lock();
        gaps.retain(|gap| gap.until > now);
        self.any.store(!gaps.is_empty(), Ordering::Release);
        let mut is_between = false;
        for gap in gaps.iter_mut() {
            let is_match = |pattern: &String| matches(pattern, channel.as_str());
            is_between |= gap.patterns.iter().any(is_match) && gap.is_after(channel, since, newest);
        }
        is_between
    }
}

impl SourceGap {
    fn is_after(
        &mut self,
        channel: &ChannelName,
        since: &StreamPosition,
        newest: &StreamPosition,
    ) -> bool {
        match self.before.get(channel) {
            Some(before) => before.epoch == since.epoch && since.offset <= before.offset,
            None => {
                if self.before.len() < CHANNELS_MAX {
                    self.before.insert(channel.clone(), newest.clone());
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use linerate_hub::{ChannelName, Epoch, StreamPosition};

    use super::SourceGaps;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn at(offset: u64) -> StreamPosition {
        StreamPosition {
            epoch: Epoch::new("e"),
            offset,
        }
    }

    #[test]
    fn positions_before_a_gap_are_separated_from_what_follows_until_it_is_forgotten() {
        let (gaps, now) = (SourceGaps::default(), Instant::now());
        let [orders, news] = ["orders:7", "news"].map(|name| ChannelName::new(name).unwrap());
        assert!(!gaps.separate(&orders, &at(5), &at(5), now));
        gaps.record(vec!["orders:*".to_owned()], now, HOUR);
        assert!(!gaps.separate(&news, &at(5), &at(5), now));
        assert!(gaps.separate(&orders, &at(5), &at(6), now));
        assert!(gaps.separate(&orders, &at(6), &at(9), now));
        assert!(!gaps.separate(&orders, &at(7), &at(9), now));
        gaps.record(vec!["orders:*".to_owned()], now, HOUR);
        assert!(gaps.separate(&orders, &at(9), &at(9), now));
        assert!(!gaps.separate(&orders, &at(9), &at(9), now + HOUR));
    }
}
