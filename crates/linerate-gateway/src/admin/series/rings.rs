//! The newest points, per second and per minute, in a fixed amount of memory.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use super::point::{Counters, Interval, Levels, Point};

/// Number of points per second: an hour.
pub(super) const SECONDS_MAX: usize = 3_600;
/// Number of points per minute: a day.
pub(super) const MINUTES_MAX: usize = 1_440;

/// For a longer pause, such as that of a suspended process, nothing is recorded: an average over it
/// would say little about any part of it.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const MINUTE_MS: u64 = 60_000;

/// A reading of the node's counters and levels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// When it was taken, on a clock that never goes backwards.
    pub(super) at: Instant,
    /// The same in milliseconds since 1970.
    pub(super) clock_ms: u64,
    pub(super) counters: Counters,
    pub(super) levels: Levels,
}

/// The points of the last hour and of the last day.
#[derive(Debug)]
pub(super) struct Rings {
    newest: Option<Reading>,
    seconds: Ring,
    minutes: Ring,
    /// The minute that is not over, with its beginning in milliseconds since 1970.
    minute: Option<(u64, Interval)>,
}

/// The newest points, in the order of their times.
#[derive(Debug)]
struct Ring {
    points: VecDeque<Point>,
    points_max: usize,
}

impl Rings {
    /// Allocates all memory that the points will take.
    pub(super) fn new() -> Self {
        Self {
            newest: None,
            seconds: Ring::new(SECONDS_MAX),
            minutes: Ring::new(MINUTES_MAX),
            minute: None,
        }
    }

    /// Adds the interval from the previous reading to this one, unless it is too long.
    pub(super) fn take(&mut self, reading: Reading) {
        let Some(previous) = self.newest.replace(reading) else {
            return;
        };
        let length = reading.at.saturating_duration_since(previous.at);
        if length.is_zero() || length > PAUSE_MAX {
            return;
        }
        let Reading {
            counters, levels, ..
        } = reading;
        let interval = Interval::between(&previous.counters, &counters, levels, length);
        let length_ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        let at_ms = reading.clock_ms.saturating_sub(length_ms);
        self.seconds.push(interval.point(at_ms));
        self.add_to_minute(at_ms - at_ms % MINUTE_MS, &interval);
    }

    /// Returns the newest point per second.
    pub(super) fn latest(&self) -> Option<&Point> {
        self.seconds.points.back()
    }

    /// Returns the points per second that begin at `after_ms` or later, oldest first.
    pub(super) fn seconds(&self, after_ms: u64) -> Vec<Point> {
        self.seconds.after(after_ms)
    }

    /// Returns the points per minute that begin at `after_ms` or later, oldest first. The last one
    /// is the minute that is not over.
    pub(super) fn minutes(&self, after_ms: u64) -> Vec<Point> {
        let mut points = self.minutes.after(after_ms);
        let unfinished = self.minute.filter(|(at_ms, _)| *at_ms >= after_ms);
        points.extend(unfinished.map(|(at_ms, interval)| interval.point(at_ms)));
        points
    }

    fn add_to_minute(&mut self, minute_ms: u64, interval: &Interval) {
        match &mut self.minute {
            Some((at_ms, minute)) if *at_ms == minute_ms => minute.add(interval),
            minute => {
                if let Some((at_ms, over)) = minute.replace((minute_ms, *interval)) {
                    self.minutes.push(over.point(at_ms));
                    // The clock may have been set back.
                    self.minutes.forget_from(minute_ms);
                }
            }
        }
    }
}

impl Ring {
    fn new(points_max: usize) -> Self {
        Self {
            points: VecDeque::with_capacity(points_max),
            points_max,
        }
    }

    /// Appends a point. Points that begin later are forgotten: the clock was set back.
    fn push(&mut self, point: Point) {
        self.forget_from(point.at_ms);
        if self.points.len() == self.points_max {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    fn forget_from(&mut self, at_ms: u64) {
        while self.points.back().is_some_and(|last| last.at_ms >= at_ms) {
            self.points.pop_back();
        }
    }

    fn after(&self, after_ms: u64) -> Vec<Point> {
        let first = self.points.partition_point(|point| point.at_ms < after_ms);
        self.points.range(first..).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::view;

    /// 12:00 on a day in 2026, at the beginning of a minute.
    const NOON_MS: u64 = 1_795_867_200_000;

    /// Rings with a clock that the test moves.
    struct Rig {
        rings: Rings,
        reading: Reading,
    }

    impl Rig {
        fn new() -> Self {
            let reading = Reading {
                at: Instant::now(),
                clock_ms: NOON_MS,
                counters: Counters::default(),
                levels: Levels::default(),
            };
            let mut rings = Rings::new();
            rings.take(reading);
            Self { rings, reading }
        }

        /// Takes a reading after `ms` in which this many publications arrived.
        fn pass(&mut self, ms: u64, publications: u64) {
            self.reading.at += Duration::from_millis(ms);
            self.reading.clock_ms += ms;
            self.reading.counters.publications += publications;
            self.rings.take(self.reading);
        }

        fn seconds(&self) -> Vec<(u64, f32)> {
            times_and_rates(&self.rings.seconds(0))
        }

        fn minutes(&self) -> Vec<(u64, f32)> {
            times_and_rates(&self.rings.minutes(0))
        }
    }

    /// Returns the seconds after noon and the rates.
    fn times_and_rates(points: &[Point]) -> Vec<(u64, f32)> {
        let pairs = points.iter();
        pairs
            .map(|it| ((it.at_ms - NOON_MS) / 1_000, it.publications_per_s))
            .collect()
    }

    #[test]
    fn each_second_has_a_point_with_its_beginning() {
        let mut rig = Rig::new();
        assert!(rig.seconds().is_empty());
        rig.pass(1_000, 10);
        rig.pass(2_000, 10);
        assert_eq!(rig.seconds(), [(0, 10.0), (1, 5.0)]);
        assert_eq!(rig.rings.latest().unwrap().publications_per_s, 5.0);
        let newer = rig.rings.seconds(NOON_MS + 1_000);
        assert_eq!(times_and_rates(&newer), [(1, 5.0)]);
    }

    #[test]
    fn a_minute_is_the_sum_of_its_seconds() {
        let mut rig = Rig::new();
        for second in 0..61 {
            rig.reading.levels.memory_bytes = if second == 30 { 9 } else { 1 };
            rig.pass(1_000, if second < 30 { 40 } else { 0 });
        }
        assert_eq!(rig.minutes(), [(0, 20.0), (60, 0.0)]);
        let peaks = rig.rings.minutes(0);
        assert_eq!(peaks.iter().map(|it| it.memory_bytes).max(), Some(9));
        assert_eq!(peaks[1].memory_bytes, 1);
    }

    #[test]
    fn the_unfinished_minute_is_returned_as_far_as_it_is_known() {
        let mut rig = Rig::new();
        rig.pass(1_000, 6);
        assert_eq!(rig.minutes(), [(0, 6.0)]);
        rig.pass(1_000, 0);
        assert_eq!(rig.minutes(), [(0, 3.0)]);
        assert!(rig.rings.minutes(NOON_MS + 1).is_empty());
    }

    #[test]
    fn memory_and_replies_are_bounded_and_the_oldest_points_are_forgotten() {
        let mut rig = Rig::new();
        let capacities = |rings: &Rings| {
            let (seconds, minutes) = (&rings.seconds.points, &rings.minutes.points);
            (seconds.capacity(), minutes.capacity())
        };
        let before = capacities(&rig.rings);
        for _ in 0..60 * (MINUTES_MAX + 2) {
            rig.pass(1_000, 1);
        }
        assert_eq!(rig.seconds().len(), SECONDS_MAX);
        assert_eq!(rig.minutes().len(), MINUTES_MAX + 1);
        assert_eq!(rig.seconds().last().unwrap().0, 60 * 1_442 - 1);
        assert_eq!(capacities(&rig.rings), before);
        // docs/gateway/memory.md has the sum.
        assert!(size_of::<Point>() <= 64, "{}", size_of::<Point>());
    }

    #[test]
    fn a_full_series_is_smaller_than_documented() {
        let mut rig = Rig::new();
        rig.reading.levels = Levels {
            clients: 100_000,
            memory_bytes: 123_456_789_012,
            resident_bytes: 123_456_789_012,
            is_deaf: true,
        };
        for _ in 0..SECONDS_MAX {
            let counters = &mut rig.reading.counters;
            counters.publication_bytes += 123_456_789_012;
            counters.deliveries += 123_456_789;
            counters.delivery_bytes += 1_234_567_890_123;
            counters.dropped += 1_234_567;
            counters.gaps += 1_000;
            counters.by_delay[9] += 123_456_789;
            rig.pass(1_003, 12_345_678);
        }
        let series = view::Series::new(1, &rig.rings.seconds(0));
        let reply = serde_json::to_string(&series).unwrap();
        assert!(reply.len() < 512 << 10, "{} bytes", reply.len());
    }

    #[test]
    fn a_pause_leaves_a_hole_and_does_not_distort_the_rates_after_it() {
        let mut rig = Rig::new();
        rig.pass(1_000, 1);
        rig.pass(600_000, 6_000);
        rig.pass(1_000, 2);
        assert_eq!(rig.seconds(), [(0, 1.0), (601, 2.0)]);
        assert_eq!(rig.minutes(), [(0, 1.0), (600, 2.0)]);
    }

    #[test]
    fn a_suspended_machine_leaves_a_hole_although_its_clock_stops() {
        let mut rig = Rig::new();
        rig.pass(1_000, 1);
        rig.reading.clock_ms += 600_000;
        rig.pass(1_000, 2);
        assert_eq!(rig.seconds(), [(0, 1.0), (601, 2.0)]);
    }

    #[test]
    fn times_increase_after_the_clock_was_set_back() {
        let mut rig = Rig::new();
        for _ in 0..200 {
            rig.pass(1_000, 1);
        }
        rig.reading.clock_ms -= 150_000;
        rig.pass(1_000, 7);
        rig.pass(60_000 / 15, 0);
        for points in [rig.rings.seconds(0), rig.rings.minutes(0)] {
            assert!(points.is_sorted_by(|a, b| a.at_ms < b.at_ms), "{points:?}");
        }
        assert_eq!(rig.seconds()[50], (50, 7.0));
        assert_eq!(rig.seconds().len(), 52);
    }
}
