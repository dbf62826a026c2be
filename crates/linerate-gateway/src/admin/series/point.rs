//! A point of the series: what happened in one second or one minute.

use std::time::Duration;

use linerate_hub::hub::{DELAY_BOUNDS_S, Deliveries};

use crate::admin::view;

/// Number of buckets of the histogram of delays.
const BUCKETS: usize = DELAY_BOUNDS_S.len() + 1;

/// Counters of the node at one moment, or what was added to them in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    /// Publications from the broker.
    pub(super) publications: u64,
    /// Bytes of their payloads.
    pub(super) publication_bytes: u64,
    /// Messages delivered to clients.
    pub(super) deliveries: u64,
    /// Bytes delivered to clients.
    pub(super) delivery_bytes: u64,
    /// Messages that slow clients have missed.
    pub(super) dropped: u64,
    /// Gaps that the broker reported.
    pub(super) gaps: u64,
    /// Delivered blocks by delay, with the bounds [`DELAY_BOUNDS_S`].
    pub(super) by_delay: [u64; BUCKETS],
}

/// Values of the node at one moment, or their maxima in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Levels {
    /// Connected clients.
    pub(super) clients: u64,
    /// Bytes of the memory budget in use.
    pub(super) memory_bytes: u64,
    /// Resident memory of the process in bytes; 0 if unknown.
    pub(super) resident_bytes: u64,
    /// True if nothing arrives from the broker.
    pub(super) is_deaf: bool,
}

/// An interval: what was added to the counters, the maxima of the levels, and how much of it the
/// node has observed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    observed: Duration,
    deaf: Duration,
    added: Counters,
    maxima: Levels,
}

/// What a reply has of an interval. Rates are per second, averaged over the observed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// The beginning of the interval, in milliseconds since 1970.
    pub(super) at_ms: u64,
    pub(super) memory_bytes: u64,
    pub(super) resident_bytes: u64,
    pub(super) publications_per_s: f32,
    pub(super) publication_bytes_per_s: f32,
    pub(super) deliveries_per_s: f32,
    pub(super) delivery_bytes_per_s: f32,
    /// The 99th percentile of the delay of delivered blocks; not a number if there were none.
    pub(super) delay_p99_ms: f32,
    pub(super) deaf_s: f32,
    pub(super) clients: u32,
    pub(super) dropped: u32,
    pub(super) gaps: u32,
}

impl Counters {
    /// Adds the deliveries of a hub.
    pub(super) fn add_deliveries(&mut self, deliveries: &Deliveries) {
        self.deliveries += deliveries.messages;
        self.delivery_bytes += deliveries.bytes;
        for (sum, count) in self.by_delay.iter_mut().zip(deliveries.by_delay) {
            *sum += count;
        }
    }

    /// Combines each counter with that of `other`.
    fn combine(&self, other: &Self, with: fn(u64, u64) -> u64) -> Self {
        Self {
            publications: with(self.publications, other.publications),
            publication_bytes: with(self.publication_bytes, other.publication_bytes),
            deliveries: with(self.deliveries, other.deliveries),
            delivery_bytes: with(self.delivery_bytes, other.delivery_bytes),
            dropped: with(self.dropped, other.dropped),
            gaps: with(self.gaps, other.gaps),
            by_delay: std::array::from_fn(|i| with(self.by_delay[i], other.by_delay[i])),
        }
    }
}

impl Interval {
    /// Returns the interval of this length between two readings of the counters, with the levels at
    /// its end.
    pub(super) fn between(
        from: &Counters,
        to: &Counters,
        levels: Levels,
        length: Duration,
    ) -> Self {
        Self {
            observed: length,
            deaf: match levels.is_deaf {
                true => length,
                false => Duration::ZERO,
            },
            added: to.combine(from, u64::saturating_sub),
            maxima: levels,
        }
    }

    /// Adds an interval that follows this one.
    pub(super) fn add(&mut self, next: &Self) {
        self.observed += next.observed;
        self.deaf += next.deaf;
        self.added = self.added.combine(&next.added, u64::saturating_add);
        let (own, levels) = (&mut self.maxima, next.maxima);
        own.clients = own.clients.max(levels.clients);
        own.memory_bytes = own.memory_bytes.max(levels.memory_bytes);
        own.resident_bytes = own.resident_bytes.max(levels.resident_bytes);
        own.is_deaf |= levels.is_deaf;
    }

    /// Returns the point for this interval, which began at `at_ms`.
    pub(super) fn point(&self, at_ms: u64) -> Point {
        let seconds = self.observed.as_secs_f64();
        let rate = |count: u64| tenths(count as f64 / seconds);
        let Self { added, maxima, .. } = self;
        Point {
            at_ms,
            memory_bytes: maxima.memory_bytes,
            resident_bytes: maxima.resident_bytes,
            publications_per_s: rate(added.publications),
            publication_bytes_per_s: rate(added.publication_bytes),
            deliveries_per_s: rate(added.deliveries),
            delivery_bytes_per_s: rate(added.delivery_bytes),
            delay_p99_ms: percentile_99_ms(&added.by_delay),
            deaf_s: tenths(self.deaf.as_secs_f64()),
            clients: narrow(maxima.clients),
            dropped: narrow(added.dropped),
            gaps: narrow(added.gaps),
        }
    }
}

impl view::Series {
    /// Returns the figures of these points, which are `step_s` seconds apart.
    pub(super) fn new(step_s: u32, points: &[Point]) -> Self {
        fn each<T>(points: &[Point], value: fn(&Point) -> T) -> Vec<T> {
            points.iter().map(value).collect()
        }
        Self {
            step_s,
            at_ms: each(points, |it| it.at_ms),
            publications_per_s: each(points, |it| it.publications_per_s),
            publication_bytes_per_s: each(points, |it| it.publication_bytes_per_s),
            deliveries_per_s: each(points, |it| it.deliveries_per_s),
            delivery_bytes_per_s: each(points, |it| it.delivery_bytes_per_s),
            delay_p99_ms: each(points, |it| it.delay_p99_ms),
            dropped: each(points, |it| it.dropped),
            gaps: each(points, |it| it.gaps),
            deaf_s: each(points, |it| it.deaf_s),
            clients: each(points, |it| it.clients),
            memory_bytes: each(points, |it| it.memory_bytes),
            resident_bytes: each(points, |it| it.resident_bytes),
        }
    }
}

/// Returns the 99th percentile in milliseconds of a histogram of delays, interpolated within its
/// bucket as Prometheus does; not a number if the histogram is empty. Delays beyond the last bound
/// count as that bound.
fn percentile_99_ms(by_delay: &[u64; BUCKETS]) -> f32 {
    let total: u64 = by_delay.iter().sum();
    let rank = 0.99 * total as f64;
    let (mut below, mut lower) = (0_u64, 0.0);
    for (count, upper) in by_delay.iter().zip(DELAY_BOUNDS_S) {
        let through = below + count;
        if *count > 0 && through as f64 >= rank {
            let share = (rank - below as f64) / *count as f64;
            let seconds = lower + (upper - lower) * share;
            return (seconds * 1e6).round() as f32 / 1e3;
        }
        (below, lower) = (through, upper);
    }
    match total {
        0 => f32::NAN,
        _ => (lower * 1e3) as f32,
    }
}

/// Rounds to a tenth, so that replies are short.
fn tenths(value: f64) -> f32 {
    ((value * 10.0).round() / 10.0) as f32
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Counters, Duration, Interval, Levels, percentile_99_ms};

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a histogram with `count` delays in a bucket.
    fn delays<const N: usize>(buckets: [(usize, u64); N]) -> [u64; BUCKETS] {
        let mut by_delay = [0; BUCKETS];
        for (bucket, count) in buckets {
            by_delay[bucket] = count;
        }
        by_delay
    }

    #[test]
    fn percentile_is_interpolated_between_the_bounds_of_its_bucket() {
        assert!(percentile_99_ms(&delays([])).is_nan());
        // 99 of 100 are in the first bucket, which ends at 0.1 ms.
        assert_eq!(percentile_99_ms(&delays([(0, 99), (4, 1)])), 0.1);
        // The 99th of 100 is half way from 1 ms to 2.5 ms.
        assert_eq!(percentile_99_ms(&delays([(0, 98), (4, 2)])), 1.75);
        assert_eq!(percentile_99_ms(&delays([(BUCKETS - 1, 1)])), 10_000.0);
    }

    #[test]
    fn percentile_of_a_sum_is_that_of_all_deliveries_and_not_of_the_percentiles() {
        let second = |by_delay, levels| {
            let to = Counters {
                by_delay,
                ..Counters::default()
            };
            Interval::between(&Counters::default(), &to, levels, SECOND)
        };
        let busy = second(delays([(0, 1_000)]), Levels::default());
        let slow = second(delays([(12, 5)]), Levels::default());
        assert_eq!(slow.point(0).delay_p99_ms, 995.0);
        let mut both = busy;
        both.add(&slow);
        assert!(both.point(0).delay_p99_ms <= 0.1, "{both:?}");
    }

    #[test]
    fn rates_are_averages_and_levels_maxima() {
        let counters = |publications, gaps| Counters {
            publications,
            gaps,
            ..Counters::default()
        };
        let levels = |memory_bytes, is_deaf| Levels {
            memory_bytes,
            is_deaf,
            ..Levels::default()
        };
        let (a, b, c) = (counters(0, 0), counters(300, 2), counters(400, 3));
        let mut interval = Interval::between(&a, &b, levels(900, true), SECOND);
        interval.add(&Interval::between(&b, &c, levels(100, false), 3 * SECOND));
        let point = interval.point(7);
        assert_eq!((point.at_ms, point.publications_per_s), (7, 100.0));
        assert_eq!((point.memory_bytes, point.gaps), (900, 3));
        assert_eq!(point.deaf_s, 1.0);
    }

    #[test]
    fn counters_that_decrease_add_nothing() {
        let from = Counters {
            deliveries: 9,
            ..Counters::default()
        };
        let interval = Interval::between(&from, &Counters::default(), Levels::default(), SECOND);
        assert_eq!(interval.point(0).deliveries_per_s, 0.0);
    }
}
