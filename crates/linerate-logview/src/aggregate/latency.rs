//! Request durations, counted in buckets whose width grows with the duration.
//!
//! Durations below 64 µs have a bucket each. Above that, each doubling is divided into 64 buckets,
//! as in HdrHistogram. The middle of a bucket differs from the durations in it by at most 1/128.

use crate::summary::Latency;

/// The number of buckets per doubling, as a power of two.
const STEPS_BITS: u32 = 6;
const STEPS: u64 = 1 << STEPS_BITS;
/// One linear range, and one range for each doubling above it.
const BUCKETS: usize = (64 - STEPS_BITS as usize + 1) << STEPS_BITS;
/// How many adjacent buckets are combined for display: 8 bars per doubling.
const PICTURE_STEPS: usize = 8;
/// The error that is reported, above 1/128.
pub(super) const RELATIVE_ERROR: f64 = 0.01;

/// Counts durations in 30 KiB, allocated at the first duration.
#[derive(Debug, Default)]
pub(super) struct Durations {
    counts: Vec<u64>,
    count: u64,
    max_us: u64,
}

impl Durations {
    #[inline]
    pub(super) fn count(&mut self, duration_us: u64) {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS];
        }
        self.counts[bucket(duration_us)] += 1;
        self.count += 1;
        self.max_us = self.max_us.max(duration_us);
    }

    pub(super) fn summary(&self) -> Option<Latency> {
        (self.count > 0).then(|| Latency {
            count: self.count,
            p50_us: self.quantile(500),
            p90_us: self.quantile(900),
            p99_us: self.quantile(990),
            p999_us: self.quantile(999),
            max_us: self.max_us,
            error: RELATIVE_ERROR,
            buckets: self.picture(),
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }

    /// Returns the duration below which `thousandths` thousandths of all requests lie.
    fn quantile(&self, thousandths: u64) -> u64 {
        let rank = u128::from(self.count) * u128::from(thousandths);
        let rank = rank.div_ceil(1_000).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                let (lowest, highest) = range(bucket);
                return (lowest + (highest - lowest) / 2).min(self.max_us);
            }
        }
        self.max_us
    }

    fn picture(&self) -> Vec<(u64, u64)> {
        let bars = self.counts.chunks(PICTURE_STEPS).enumerate();
        bars.map(|(bar, counts)| {
            let (_, highest) = range((bar + 1) * PICTURE_STEPS - 1);
            (highest, counts.iter().sum())
        })
        .filter(|(_, count)| *count > 0)
        .collect()
    }
}

/// Returns the bucket of a duration.
#[inline]
fn bucket(duration_us: u64) -> usize {
    let doublings = (63 - (duration_us | (STEPS - 1)).leading_zeros()) - (STEPS_BITS - 1);
    if doublings == 0 {
        return duration_us as usize;
    }
    let step = (duration_us >> (doublings - 1)) - STEPS;
    ((u64::from(doublings) << STEPS_BITS) + step) as usize
}

/// Returns the lowest and the highest duration of a bucket.
fn range(bucket: usize) -> (u64, u64) {
    let doublings = bucket as u64 >> STEPS_BITS;
    let step = bucket as u64 & (STEPS - 1);
    if doublings == 0 {
        return (step, step);
    }
    let lowest = (STEPS + step) << (doublings - 1);
    (lowest, lowest + ((1 << (doublings - 1)) - 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BUCKETS, Durations, bucket, range};

    #[test]
    fn buckets_cover_all_durations_without_gaps() {
        let mut next = 0;
        for place in 0..BUCKETS {
            let (lowest, highest) = range(place);
            assert_eq!(lowest, next);
            assert_eq!([bucket(lowest), bucket(highest)], [place; 2]);
            next = highest.wrapping_add(1);
        }
        assert_eq!(next, 0);
    }

    #[test]
    fn without_durations_there_is_no_latency() {
        assert_eq!(Durations::default().summary(), None);
        let mut one = Durations::default();
        one.count(1_000_003);
        let one = one.summary().unwrap();
        assert!(one.p50_us.abs_diff(1_000_003) < 10_000);
        assert_eq!((one.max_us, one.count), (1_000_003, 1));
        assert_eq!(one.buckets.len(), 1);
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_error(
            durations in prop::collection::vec((0u32..64, any::<u64>()), 1..300),
        ) {
            let mut all: Vec<u64> = durations.iter().map(|(shift, bits)| bits >> shift).collect();
            let mut counted = Durations::default();
            all.iter().for_each(|&duration| counted.count(duration));
            all.sort_unstable();
            let summary = counted.summary().unwrap();
            let said = [summary.p50_us, summary.p90_us, summary.p99_us, summary.p999_us];
            for (said, thousandths) in said.into_iter().zip([500, 900, 990, 999]) {
                let exact = all[(all.len() * thousandths).div_ceil(1_000) - 1];
                prop_assert!(said.abs_diff(exact) as f64 <= exact as f64 * summary.error);
            }
            let pictured: u64 = summary.buckets.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(pictured, summary.count);
            prop_assert!(summary.buckets.is_sorted());
            prop_assert!(summary.buckets.last().unwrap().0 >= summary.max_us);
        }
    }
}
