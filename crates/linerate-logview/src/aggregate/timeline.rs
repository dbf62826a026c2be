//! Requests over time, in a bounded number of buckets.

mod series;

use super::counts::{CLASSES, class};
use super::dictionary::Dictionary;
use crate::store::{HOST, METHOD, Row};
use crate::summary;
use series::{ByCode, Series};

/// The initial length of a bucket in seconds.
const SECONDS_MIN: i64 = 60;

/// The greatest length of a bucket: 60 × 2^12 seconds, so that 2,880 of them span 22 years. Times
/// that are further apart come from a wrong clock (devices without a battery boot in 1970), and one
/// such line must not squeeze all others into a single bucket.
const SECONDS_MAX: i64 = SECONDS_MIN << 12;

/// How many more requests each restart requires than the one before, so that a log with wildly
/// scattered times does not spend its processor time on restarts.
const RESTART_COST: u64 = 16;

/// The most hosts and methods that have their own series: those that occur first.
const HOSTS_MAX: usize = 64;
const METHODS_MAX: usize = 32;
/// How many of the most frequent hosts are reported.
const HOSTS_REPORTED_MAX: usize = 8;

/// Requests and response bytes by time bucket, with the requests also by class of status, method
/// and host.
///
/// Buckets are contiguous from the first to the last in use. When there would be too many,
/// neighbours are merged and the bucket length doubles. A time that does not fit even then is
/// counted as outside. Once more requests are outside than inside, the buckets restart at the times
/// that are outside; each restart requires a few more such requests than the one before.
#[derive(Debug)]
pub(super) struct Timeline {
    classes: [Series; CLASSES.len()],
    bytes: Series,
    methods: ByCode,
    hosts: ByCode,
    /// The number of buckets in each list.
    buckets: usize,
    /// The length of a bucket in seconds.
    seconds: i64,
    seconds_min: i64,
    /// The number of the first bucket: its start time divided by `seconds`.
    first: i64,
    /// The index of the bucket that was last counted in.
    current: usize,
    /// When the current bucket begins.
    current_start: i64,
    /// How many requests are in the buckets.
    inside: u64,
    /// How many requests are outside the buckets.
    outside: u64,
    /// How many of those occurred since the last restart.
    outside_since_start: u64,
    /// How often the buckets were restarted.
    restarts: u64,
    /// The earliest and the latest time, including those outside the buckets.
    range: Option<(i64, i64)>,
    buckets_max: i64,
}

impl Timeline {
    /// Creates a timeline of at least one bucket.
    pub(super) fn new(buckets_max: usize) -> Self {
        Self::with_seconds_min(buckets_max, SECONDS_MIN)
    }

    /// Creates a timeline whose initial bucket length suits a time span.
    pub(super) fn for_span(buckets_max: usize, span_seconds: i64) -> Self {
        /// Divisors of a minute, shortest first.
        const FINER: [i64; 3] = [1, 5, 15];
        /// The most bars in a chart of such a short time.
        const BARS_MAX: i64 = 720;
        let bars_max = i64::try_from(buckets_max).map_or(BARS_MAX, |it| it.min(BARS_MAX));
        let fits = |&seconds: &i64| span_seconds < seconds.saturating_mul(bars_max);
        let seconds = FINER.into_iter().find(fits).unwrap_or(SECONDS_MIN);
        Self::with_seconds_min(buckets_max, seconds)
    }

    fn with_seconds_min(buckets_max: usize, seconds_min: i64) -> Self {
        Self {
            classes: std::array::from_fn(|_| Series::default()),
            bytes: Series::default(),
            methods: ByCode::new(METHODS_MAX),
            hosts: ByCode::new(HOSTS_MAX),
            buckets: 0,
            seconds: seconds_min,
            seconds_min,
            first: 0,
            current: 0,
            current_start: 0,
            inside: 0,
            outside: 0,
            outside_since_start: 0,
            restarts: 0,
            range: None,
            buckets_max: i64::from(u32::try_from(buckets_max).unwrap_or(u32::MAX)).max(1),
        }
    }

    /// Counts requests, in order.
    pub(super) fn count_all(&mut self, rows: &[Row]) {
        for row in rows {
            let (first, last) = self.range.unwrap_or((row.time, row.time));
            self.range = Some((first.min(row.time), last.max(row.time)));
        }
        let mut rest = rows;
        while let Some(row) = rest.first() {
            let fits = self.is_current(row.time) || self.make_current(row.time);
            let run = rest
                .iter()
                .take_while(|row| fits && self.is_current(row.time));
            let (run, behind) = rest.split_at(run.count());
            self.count_in_current(run);
            rest = if fits { behind } else { &rest[1..] };
        }
    }

    /// Counts requests that fall into the current bucket.
    #[inline]
    fn count_in_current(&mut self, rows: &[Row]) {
        let mut classes = [0; CLASSES.len()];
        let mut bytes = 0u64;
        for row in rows {
            classes[class(row.status)] += 1;
            bytes = bytes.saturating_add(row.bytes_sent);
            self.methods
                .add(row.codes[METHOD], self.current, self.buckets);
            self.hosts.add(row.codes[HOST], self.current, self.buckets);
        }
        for (series, number) in self.classes.iter_mut().zip(classes) {
            series.add(self.current, number);
        }
        self.bytes.add(self.current, bytes);
        self.inside += rows.len() as u64;
    }

    /// Returns whether a time falls into the current bucket.
    #[inline]
    fn is_current(&self, time: i64) -> bool {
        self.buckets > 0 && (0..self.seconds).contains(&time.wrapping_sub(self.current_start))
    }

    /// Returns the earliest time, including those outside the buckets.
    pub(super) fn first_time(&self) -> Option<i64> {
        self.range.map(|(first, _)| first)
    }

    /// Returns the latest time, including those outside the buckets.
    pub(super) fn last_time(&self) -> Option<i64> {
        self.range.map(|(_, last)| last)
    }

    /// Returns the timeline as it is reported. The dictionaries resolve the codes of methods and
    /// hosts.
    pub(super) fn summary(&self, methods: &Dictionary, hosts: &Dictionary) -> summary::Timeline {
        let classes = CLASSES.iter().zip(&self.classes);
        summary::Timeline {
            start: (self.buckets > 0).then_some(self.first * self.seconds),
            bucket_seconds: self.seconds.unsigned_abs(),
            classes: classes.map(|(name, it)| (*name, it.to_vec())).collect(),
            bytes: self.bytes.to_vec(),
            by_method: self.methods.report(methods, usize::MAX),
            by_host: self.hosts.report(hosts, HOSTS_REPORTED_MAX),
            outside: self.outside,
        }
    }

    /// Returns how many bytes of heap the buckets occupy.
    pub(super) fn memory_bytes(&self) -> usize {
        let classes: usize = self.classes.iter().map(Series::memory_bytes).sum();
        classes
            + self.bytes.memory_bytes()
            + self.methods.memory_bytes()
            + self.hosts.memory_bytes()
    }

    fn all_series(&mut self) -> impl Iterator<Item = &mut Series> {
        self.classes
            .iter_mut()
            .chain([&mut self.bytes])
            .chain(self.methods.all_series())
            .chain(self.hosts.all_series())
    }

    /// Makes the bucket of `time` the current one and returns true, or counts the request as
    /// outside and returns false.
    fn make_current(&mut self, time: i64) -> bool {
        if self.buckets == 0 {
            self.start_at(time);
        } else if !self.fits(time, self.seconds_max()) {
            self.outside += 1;
            self.outside_since_start += 1;
            if self.outside_since_start <= self.inside + self.restarts * RESTART_COST {
                return false;
            }
            // The requests that were inside are outside now, except this one, which will be inside.
            self.outside += self.inside - 1;
            self.restarts += 1;
            self.start_at(time);
        }
        while !self.fits(time, self.seconds) {
            self.merge_neighbours();
        }
        let number = time.div_euclid(self.seconds);
        let before = (self.first - number).max(0);
        let after = (number - self.last()).max(0);
        self.all_series()
            .for_each(|it| it.grow(before as usize, after as usize));
        self.buckets += (before + after) as usize;
        self.first -= before;
        self.current = (number - self.first) as usize;
        self.current_start = number * self.seconds;
        true
    }

    /// Drops all buckets and starts with a single bucket of the shortest length.
    fn start_at(&mut self, time: i64) {
        self.all_series().for_each(Series::restart);
        self.buckets = 1;
        self.seconds = self.seconds_min;
        self.first = time.div_euclid(self.seconds);
        self.inside = 0;
        self.outside_since_start = 0;
    }

    /// Returns the greatest length of a bucket: the last doubling that is not above the limit.
    fn seconds_max(&self) -> i64 {
        let doublings = (SECONDS_MAX / self.seconds_min).ilog2();
        self.seconds_min << doublings
    }

    /// Returns whether buckets of `seconds`, a multiple of the present length, could cover the
    /// present buckets and `time` without exceeding the limit.
    fn fits(&self, time: i64, seconds: i64) -> bool {
        let scale = seconds / self.seconds;
        let number = time.div_euclid(seconds);
        let first = self.first.div_euclid(scale).min(number);
        let last = self.last().div_euclid(scale).max(number);
        last - first < self.buckets_max
    }

    /// Doubles the length of the buckets.
    fn merge_neighbours(&mut self) {
        let first = self.first.div_euclid(2);
        let last = self.last().div_euclid(2);
        let is_odd = self.first.rem_euclid(2) == 1;
        self.all_series().for_each(|it| it.merge_neighbours(is_odd));
        self.buckets = (last - first + 1) as usize;
        self.first = first;
        self.seconds *= 2;
    }

    /// Returns the number of the last bucket.
    fn last(&self) -> i64 {
        self.first + self.buckets as i64 - 1
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SECONDS_MAX, SECONDS_MIN, Timeline};
    use crate::aggregate::dictionary::Dictionary;
    use crate::store::{HOST, METHOD, Row};
    use crate::summary;

    fn row(time: i64, status: u16) -> Row {
        Row {
            time,
            status,
            bytes_sent: 3,
            ..Row::default()
        }
    }

    fn summary(timeline: &Timeline) -> summary::Timeline {
        let none = Dictionary::new(0, 0);
        timeline.summary(&none, &none)
    }

    fn timeline(buckets_max: usize, times: &[i64]) -> Timeline {
        let mut timeline = Timeline::new(buckets_max);
        for &time in times {
            timeline.count_all(&[row(time, 200)]);
            assert!(timeline.buckets <= buckets_max);
        }
        timeline
    }

    /// Returns the start, the length of a bucket, the 2xx counts, and the number of requests
    /// outside.
    fn picture(timeline: &Timeline) -> (Option<i64>, u64, Vec<u64>, u64) {
        let mut summary = summary(timeline);
        let bytes: Vec<u64> = summary.bytes.iter().map(|bytes| bytes / 3).collect();
        assert_eq!(bytes.iter().sum::<u64>(), timeline.inside);
        let counts = summary.classes.remove("2xx").unwrap();
        (
            summary.start,
            summary.bucket_seconds,
            counts,
            summary.outside,
        )
    }

    #[test]
    fn minutes_are_counted_in_any_order_without_gaps() {
        assert_eq!(picture(&timeline(9, &[])), (None, 60, vec![], 0));
        let shuffled = timeline(9, &[240, 120, 125, 299, 179, 180]);
        assert_eq!(picture(&shuffled), (Some(120), 60, vec![3, 1, 2], 0));
        assert_eq!(shuffled.first_time(), Some(120));
        assert_eq!(shuffled.last_time(), Some(299));
        assert_eq!(
            picture(&timeline(9, &[-1, 0])),
            (Some(-60), 60, vec![1, 1], 0)
        );
    }

    #[test]
    fn classes_are_stacked() {
        let mut timeline = Timeline::new(9);
        for status in [101, 204, 301, 404, 503, 999, 0] {
            timeline.count_all(&[row(0, status)]);
        }
        let counts: Vec<_> = summary(&timeline).classes.into_values().collect();
        let one = || vec![1];
        assert_eq!(counts, [one(), one(), one(), one(), one(), vec![2]]);
    }

    #[test]
    fn methods_and_hosts_have_complete_lists_however_late_they_appear() {
        let mut methods = Dictionary::new(2, 99);
        let mut hosts = Dictionary::new(99, 999);
        let mut timeline = Timeline::new(9);
        for (minute, method, host) in [(1, "GET", "a"), (1, "", ""), (2, "PUT", "b"), (0, "X", "a")]
        {
            let mut row = row(minute * 60, 200);
            row.codes[METHOD] = methods.code(method.as_bytes());
            row.codes[HOST] = hosts.code(host.as_bytes());
            timeline.count_all(&[row]);
        }
        for n in 0..9 {
            let mut row = row(60, 200);
            row.codes[HOST] = hosts.code(format!("c{n}").as_bytes());
            timeline.count_all(&[row]);
        }
        let summary = timeline.summary(&methods, &hosts);
        let expected = [
            ("(other)", [1, 0, 0]),
            ("GET", [0, 1, 0]),
            ("PUT", [0, 0, 1]),
        ];
        let by_method: Vec<_> = summary
            .by_method
            .iter()
            .map(|(it, list)| (&**it, &list[..]))
            .collect();
        assert_eq!(
            by_method,
            expected.each_ref().map(|(it, list)| (*it, &list[..]))
        );
        assert_eq!(summary.by_host["a"], [1, 1, 0]);
        assert_eq!(summary.by_host["(other)"], [0, 3, 0]);
        assert_eq!(summary.by_host.len(), 9);
    }

    #[test]
    fn short_spans_have_short_buckets() {
        let seconds = |span| {
            let mut timeline = Timeline::for_span(2_880, span);
            for time in [1_000_000, 1_000_000 + span] {
                timeline.count_all(&[row(time, 200)]);
            }
            assert!(timeline.buckets <= 721);
            summary(&timeline).bucket_seconds
        };
        let spans = [0, 719, 720, 3_599, 3_600, 10_799, 10_800];
        assert_eq!(spans.map(seconds), [1, 1, 5, 5, 15, 15, 60]);
    }

    #[test]
    fn buckets_beyond_the_limit_are_merged() {
        let full = timeline(4, &[60, 120, 180, 240]);
        assert_eq!(picture(&full), (Some(60), 60, vec![1, 1, 1, 1], 0));
        let later = timeline(4, &[60, 120, 180, 240, 300]);
        assert_eq!(picture(&later), (Some(0), 120, vec![1, 2, 2], 0));
        let earlier = timeline(4, &[60, 120, 180, 240, 0]);
        assert_eq!(picture(&earlier), (Some(0), 120, vec![2, 2, 1], 0));
        let far = timeline(4, &[0, 60 * 1_000]);
        assert_eq!(picture(&far), (Some(0), 60 * 256, vec![1, 0, 0, 1], 0));
    }

    #[test]
    fn longest_buckets_cover_exactly_their_span() {
        let span = 4 * SECONDS_MAX;
        let reached = timeline(4, &[0, 0, span - 1]);
        assert_eq!(
            picture(&reached),
            (Some(0), SECONDS_MAX as u64, vec![2, 0, 0, 1], 0)
        );
        let beyond = timeline(4, &[0, 0, span]);
        assert_eq!(picture(&beyond), (Some(0), 60, vec![2], 1));
        assert_eq!(beyond.last_time(), Some(span));
    }

    #[test]
    fn few_lines_with_a_wrong_clock_do_not_spoil_the_picture() {
        let day = 18_649 * 86_400;
        let mut times = vec![5; 3];
        times.extend((0..10).map(|minute| day + minute * 60));
        times.push(253_402_300_799);
        let timeline = timeline(2_880, &times);
        // Three from 1970, three that arrived before the buckets moved, and one from 9999.
        let expected = (Some(day + 180), SECONDS_MIN as u64, vec![1; 7], 7);
        assert_eq!(picture(&timeline), expected);
    }

    #[test]
    fn each_start_takes_more_requests_outside_than_the_one_before() {
        let times: Vec<i64> = (0..10_000).map(|place| place * 17 * SECONDS_MAX).collect();
        let timeline = timeline(16, &times);
        // Otherwise every second request would cause a restart. 16 × (1 + 2 + … + 35) ≈ 10,000.
        assert!(
            (30..40).contains(&timeline.restarts),
            "{}",
            timeline.restarts
        );
        let (_, _, counts, outside) = picture(&timeline);
        assert_eq!(counts.iter().sum::<u64>() + outside, 10_000);
    }

    proptest! {
        #[test]
        fn every_request_is_counted_once_in_the_right_bucket(
            buckets_max in 1usize..50,
            times in prop::collection::vec(0i64..400_000, 1..200),
        ) {
            let timeline = timeline(buckets_max, &times);
            let (start, seconds, counts, outside) = picture(&timeline);
            let (start, seconds) = (start.unwrap(), seconds as i64);
            let mut expected = vec![0u64; counts.len()];
            for time in &times {
                if outside == 0 {
                    expected[((time - start) / seconds) as usize] += 1;
                }
            }
            prop_assert_eq!(start % seconds, 0);
            prop_assert_eq!(counts.iter().sum::<u64>() + outside, times.len() as u64);
            prop_assert!(outside > 0 || counts == expected);
        }

        #[test]
        fn extreme_times_stay_within_the_limit(
            times in prop::collection::vec(-86_400i64..253_402_300_800, 1..200),
        ) {
            let timeline = timeline(16, &times);
            let (_, _, counts, outside) = picture(&timeline);
            prop_assert_eq!(counts.iter().sum::<u64>() + outside, times.len() as u64);
        }
    }
}
