//! What the subscribers report.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// What a process of subscribers has seen since its last report.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct CrowdReport {
    /// The number of open connections.
    pub(super) open: u64,
    /// The number of subscribers that are to be connected.
    pub(super) wanted: u64,
    pub(super) received: u64,
    /// Publications that subscribers missed, but that a closed connection or a reported gap told
    /// them of.
    pub(super) missed_told: u64,
    /// Publications that subscribers missed without being told.
    pub(super) lost_untold: u64,
    pub(super) repeated: u64,
    /// Messages that are none, or of another channel.
    pub(super) misrouted: u64,
    /// Reported gaps.
    pub(super) gaps: u64,
    /// Subscribers that have not received the last publication of their channel.
    pub(super) behind: u64,
    /// Connections that have ended, by close code.
    pub(super) closed: BTreeMap<u16, u64>,
    /// Failed attempts to connect.
    pub(super) failed: u64,
    pub(super) last_failure: Option<String>,
    /// How long publications took to arrive: durations in microseconds, and how many took as long.
    pub(super) delays_us: BTreeMap<u64, u64>,
}

impl CrowdReport {
    /// Adds what another process has seen in the same time.
    pub(super) fn add(&mut self, other: Self) {
        self.open += other.open;
        self.wanted += other.wanted;
        self.behind += other.behind;
        self.see(other);
    }

    /// Adds what was seen later, and replaces the numbers that describe the present.
    pub(super) fn then(&mut self, later: Self) {
        self.open = later.open;
        self.wanted = later.wanted;
        self.behind = later.behind;
        self.see(later);
    }

    fn see(&mut self, other: Self) {
        self.received += other.received;
        self.missed_told += other.missed_told;
        self.lost_untold += other.lost_untold;
        self.repeated += other.repeated;
        self.misrouted += other.misrouted;
        self.gaps += other.gaps;
        self.failed += other.failed;
        self.last_failure = other.last_failure.or(self.last_failure.take());
        for (code, count) in other.closed {
            *self.closed.entry(code).or_default() += count;
        }
        for (delay, count) in other.delays_us {
            *self.delays_us.entry(delay).or_default() += count;
        }
    }

    /// Returns whether the subscribers have received everything, or were told what they missed.
    pub(super) const fn is_complete(&self) -> bool {
        self.lost_untold == 0 && self.repeated == 0 && self.misrouted == 0 && self.behind == 0
    }

    /// Returns the number of connections that have ended.
    pub(super) fn interruptions(&self) -> u64 {
        self.closed.values().sum()
    }

    /// Returns the delays at these quantiles, in microseconds.
    pub(super) fn delays<const N: usize>(&self, quantiles: [f64; N]) -> [u64; N] {
        let Ok(mut delays) = Histogram::<u64>::new(2) else {
            return [0; N];
        };
        for (value, count) in &self.delays_us {
            // The histogram grows as needed, so this does not fail.
            _ = delays.record_n(*value, *count);
        }
        quantiles.map(|quantile| delays.value_at_quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::CrowdReport;

    fn report(open: u64, received: u64) -> CrowdReport {
        CrowdReport {
            open,
            received,
            closed: [(1001, 2)].into(),
            delays_us: [(100, received)].into(),
            ..CrowdReport::default()
        }
    }

    #[test]
    fn processes_are_added_and_times_follow_each_other() {
        let mut all = report(5, 10);
        all.add(report(7, 20));
        assert_eq!((all.open, all.received, all.interruptions()), (12, 30, 4));
        all.then(report(3, 1));
        assert_eq!((all.open, all.received), (3, 31));
        assert_eq!(all.delays([0.5, 1.0]), [100, 100]);
        assert!(all.is_complete());
    }
}
