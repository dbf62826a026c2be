//! Requests over time, in a bounded number of buckets.

mod series;
mod span;

use std::collections::BTreeMap;

use super::counts::{CLASSES, class};
use super::dictionary::Dictionary;
use crate::store::{HOST, METHOD, Row};
use crate::summary;
use series::{ByCode, Places, Series};
pub(super) use span::Span;
use span::{SECONDS_MAX, longer, without_strays};

/// The most hosts and methods that have their own series: those that occur first.
const HOSTS_MAX: usize = 64;
const METHODS_MAX: usize = 32;
/// How many of the most frequent hosts are reported.
const HOSTS_REPORTED_MAX: usize = 8;

/// Requests and response bytes by time bucket, with the requests also by class of status, method
/// and host.
///
/// Only buckets with requests are kept, so that a single line with a wrong time costs one bucket
/// and not the detail of all others. When there are too many, strays are dropped and counted as
/// outside; if that is not enough, the buckets become longer. The report covers the time from the
/// first bucket to the last, without strays.
#[derive(Debug)]
pub(super) struct Timeline {
    classes: [Series; CLASSES.len()],
    bytes: Series,
    methods: ByCode,
    hosts: ByCode,
    /// The place of each bucket in the series, by its number: its start divided by `seconds`.
    places: BTreeMap<i64, usize>,
    /// The length of a bucket in seconds.
    seconds: i64,
    /// The place of the bucket that was last counted in.
    current: usize,
    /// When the current bucket begins.
    current_start: i64,
    /// How many requests are not in the buckets.
    outside: u64,
    /// The earliest and the latest time, including those outside the buckets.
    range: Option<(i64, i64)>,
    /// The time that is reported, if that does not depend on the requests.
    fixed: Option<Span>,
    buckets_max: usize,
}

impl Timeline {
    /// Creates a timeline that is reported in at most `buckets_max` buckets, but at least one.
    pub(super) fn new(buckets_max: usize) -> Self {
        Self {
            classes: std::array::from_fn(|_| Series::default()),
            bytes: Series::default(),
            methods: ByCode::new(METHODS_MAX),
            hosts: ByCode::new(HOSTS_MAX),
            places: BTreeMap::new(),
            seconds: 1,
            current: 0,
            current_start: 0,
            outside: 0,
            range: None,
            fixed: None,
            buckets_max: buckets_max.max(1),
        }
    }

    /// Creates a timeline of a fixed span. Requests at other times are counted as outside.
    pub(super) fn of_span(buckets_max: usize, span: Span) -> Self {
        Self {
            seconds: span.seconds,
            fixed: Some(span),
            ..Self::new(buckets_max)
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
            if !self.is_current(row.time) && !self.make_current(row.time) {
                rest = &rest[1..];
                continue;
            }
            let run = rest.iter().take_while(|row| self.is_current(row.time));
            let (run, behind) = rest.split_at(run.count());
            self.count_in_current(run);
            rest = behind;
        }
    }

    /// Counts requests that fall into the current bucket.
    #[inline]
    fn count_in_current(&mut self, rows: &[Row]) {
        let mut classes = [0; CLASSES.len()];
        let mut bytes = 0u64;
        let buckets = self.places.len();
        for row in rows {
            classes[class(row.status)] += 1;
            bytes = bytes.saturating_add(row.bytes_sent);
            self.methods.add(row.codes[METHOD], self.current, buckets);
            self.hosts.add(row.codes[HOST], self.current, buckets);
        }
        for (series, number) in self.classes.iter_mut().zip(classes) {
            series.add(self.current, number);
        }
        self.bytes.add(self.current, bytes);
    }

    /// Returns whether a time falls into the current bucket.
    #[inline]
    fn is_current(&self, time: i64) -> bool {
        let is_inside = (0..self.seconds).contains(&time.wrapping_sub(self.current_start));
        is_inside && !self.places.is_empty() && self.fixed.is_none_or(|span| span.contains(time))
    }

    /// Returns the earliest time, including those outside the buckets.
    pub(super) fn first_time(&self) -> Option<i64> {
        self.range.map(|(first, _)| first)
    }

    /// Returns the latest time, including those outside the buckets.
    pub(super) fn last_time(&self) -> Option<i64> {
        self.range.map(|(_, last)| last)
    }

    /// Returns the span that is reported: from the first bucket to the last, without strays. `None`
    /// if there are no requests.
    pub(super) fn span(&self) -> Option<Span> {
        let buckets = self.buckets();
        let shown = &buckets[without_strays(&buckets, self.seconds, self.buckets_max)];
        let (first, last) = (shown.first()?.0, shown.last()?.0);
        self.fixed.or_else(|| {
            let last_second = last * self.seconds + self.seconds - 1;
            Span::new(
                first * self.seconds,
                last_second,
                self.seconds,
                self.buckets_max,
            )
        })
    }

    /// Returns the span of the requests from `from` to `last`, where the extreme values stand for
    /// the ends of [`span`](Self::span). `None` if no span with a bounded number of buckets has
    /// requests of this time.
    pub(super) fn span_between(&self, from: i64, last: i64) -> Option<Span> {
        let whole = self.span()?;
        if (from, last) == (i64::MIN, i64::MAX) {
            return Some(whole);
        }
        let (first_time, last_time) = self.range?;
        let is_apart = from > whole.last || last < whole.first;
        let first = match from {
            i64::MIN if !is_apart => whole.first,
            from => from.max(first_time),
        };
        let last = match last {
            i64::MAX if !is_apart => whole.last,
            last => last.min(last_time),
        };
        Span::new(first, last, 1, self.buckets_max)
    }

    /// Returns the timeline as it is reported. The dictionaries resolve the codes of methods and
    /// hosts.
    pub(super) fn summary(&self, methods: &Dictionary, hosts: &Dictionary) -> summary::Timeline {
        let span = self.span().map(|span| Span {
            seconds: span.seconds.max(self.seconds),
            ..span
        });
        let places = self.places_in(span);
        let buckets = self.places.values().map(|&place| self.requests(place));
        let counted: u64 = buckets.sum();
        let classes: BTreeMap<_, _> = CLASSES
            .iter()
            .zip(&self.classes)
            .map(|(name, series)| (*name, series.arranged(&places)))
            .collect();
        let shown: u64 = classes.values().flatten().sum();
        summary::Timeline {
            start: span.map(|span| span.first_number() * span.seconds),
            bucket_seconds: span.map_or(60, |span| span.seconds.unsigned_abs()),
            classes,
            bytes: self.bytes.arranged(&places),
            by_method: self.methods.report(methods, usize::MAX, &places),
            by_host: self.hosts.report(hosts, HOSTS_REPORTED_MAX, &places),
            outside: self.outside + counted - shown,
        }
    }

    /// Returns how many bytes of heap the buckets occupy.
    pub(super) fn memory_bytes(&self) -> usize {
        /// An entry of a tree that is half full.
        const PLACE_BYTES: usize = 32;
        let classes: usize = self.classes.iter().map(Series::memory_bytes).sum();
        classes
            + self.bytes.memory_bytes()
            + self.methods.memory_bytes()
            + self.hosts.memory_bytes()
            + self.places.len() * PLACE_BYTES
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
        if self.fixed.is_some_and(|span| !span.contains(time)) {
            self.outside += 1;
            return false;
        }
        let is_new = !self.places.contains_key(&time.div_euclid(self.seconds));
        if is_new && self.places.len() >= self.buckets_max + (self.buckets_max / 4).max(1) {
            self.make_space();
        }
        let number = time.div_euclid(self.seconds);
        let buckets = self.places.len();
        self.current = *self.places.entry(number).or_insert(buckets);
        self.current_start = number * self.seconds;
        if self.current == buckets {
            self.all_series().for_each(Series::push);
        }
        true
    }

    /// Drops strays, and makes the buckets longer until there are at most `buckets_max`.
    fn make_space(&mut self) {
        let buckets = self.buckets();
        let part = without_strays(&buckets, self.seconds, self.buckets_max);
        let dropped = [&buckets[..part.start], &buckets[part.end..]].concat();
        self.outside += dropped.iter().map(|(_, requests)| requests).sum::<u64>();
        let (first, last) = (buckets[part.start].0, buckets[part.end - 1].0);
        self.rearrange(|number| (first..=last).contains(&number).then_some(number));
        while self.places.len() > self.buckets_max && self.seconds < SECONDS_MAX {
            let longer = longer(self.seconds);
            let ratio = longer / self.seconds;
            self.rearrange(|number| Some(number.div_euclid(ratio)));
            self.seconds = longer;
        }
    }

    /// Gives each bucket another number, or drops it. Buckets with the same number are merged.
    fn rearrange(&mut self, number: impl Fn(i64) -> Option<i64>) {
        let mut places = Places {
            of: vec![None; self.places.len()],
            len: 0,
        };
        let mut moved = BTreeMap::new();
        for (&old, &place) in &self.places {
            if let Some(new) = number(old) {
                let next = moved.len();
                places.of[place] = Some(*moved.entry(new).or_insert(next));
            }
        }
        places.len = moved.len();
        self.places = moved;
        self.all_series().for_each(|it| it.rearrange(&places));
    }

    /// Returns where each bucket is shown in a span.
    fn places_in(&self, span: Option<Span>) -> Places {
        let mut of = vec![None; self.places.len()];
        let Some(span) = span else {
            return Places { of, len: 0 };
        };
        for (&number, &place) in &self.places {
            let start = number * self.seconds;
            if span.contains(start) || span.contains(start + self.seconds - 1) {
                let at = start.div_euclid(span.seconds) - span.first_number();
                of[place] = usize::try_from(at).ok();
            }
        }
        let len = usize::try_from(span.buckets()).unwrap_or(0);
        Places { of, len }
    }

    /// Returns the numbers of the buckets in ascending order, and their requests.
    fn buckets(&self) -> Vec<(i64, u64)> {
        let places = self.places.iter();
        places
            .map(|(&number, &place)| (number, self.requests(place)))
            .collect()
    }

    fn requests(&self, place: usize) -> u64 {
        self.classes.iter().map(|series| series.of(place)).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{SECONDS_MAX, Timeline};
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
            assert!(timeline.places.len() <= buckets_max + (buckets_max / 4).max(1));
        }
        timeline
    }

    /// Returns the start, the length of a bucket, the 2xx counts, and the number of requests
    /// outside.
    fn picture(timeline: &Timeline) -> (Option<i64>, u64, Vec<u64>, u64) {
        let mut summary = summary(timeline);
        let bytes: Vec<u64> = summary.bytes.iter().map(|bytes| bytes / 3).collect();
        let counts = summary.classes.remove("2xx").unwrap();
        assert_eq!(bytes, counts);
        (
            summary.start,
            summary.bucket_seconds,
            counts,
            summary.outside,
        )
    }

    #[test]
    fn buckets_are_counted_in_any_order_without_gaps() {
        assert_eq!(picture(&timeline(9, &[])), (None, 60, vec![], 0));
        let shuffled = timeline(9, &[24, 12, 12, 26, 17, 18]);
        assert_eq!(picture(&shuffled), (Some(10), 5, vec![2, 2, 1, 1], 0));
        assert_eq!(shuffled.first_time(), Some(12));
        assert_eq!(shuffled.last_time(), Some(26));
        assert_eq!(
            picture(&timeline(9, &[-1, 0])),
            (Some(-1), 1, vec![1, 1], 0)
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
        for (second, method, host) in [(1, "GET", "a"), (1, "", ""), (2, "PUT", "b"), (0, "X", "a")]
        {
            let mut row = row(second, 200);
            row.codes[METHOD] = methods.code(method.as_bytes());
            row.codes[HOST] = hosts.code(host.as_bytes());
            timeline.count_all(&[row]);
        }
        for n in 0..9 {
            let mut row = row(1, 200);
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
        assert_eq!(picture(&beyond), (Some(0), 1, vec![2], 1));
        assert_eq!(beyond.last_time(), Some(span));
    }

    #[test]
    fn lines_with_a_wrong_clock_take_no_others_out_of_the_picture() {
        let day = 18_649 * 86_400;
        let mut times = vec![5; 3];
        times.extend((0..10).map(|minute| day + minute * 60));
        times.push(253_402_300_799);
        let (start, seconds, counts, outside) = picture(&timeline(2_880, &times));
        assert_eq!((start, seconds, outside), (Some(day), 1, 4));
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (541, 10));
    }

    #[test]
    fn one_line_of_another_year_does_not_spoil_the_time_axis() {
        let day = 18_649 * 86_400;
        let requests = (0..86_400).step_by(20).map(|second| day + second);
        for stray in [day - 400 * 86_400, day + 400 * 86_400] {
            for before in [true, false] {
                let mut times: Vec<_> = requests.clone().collect();
                times.insert(if before { 0 } else { times.len() }, stray);
                let (start, seconds, counts, outside) = picture(&timeline(2_880, &times));
                assert_eq!((start, seconds, outside), (Some(day), 60, 1));
                assert_eq!(counts, [3; 1_440]);
            }
        }
    }

    #[test]
    fn wildly_scattered_times_do_not_cost_the_detail_of_the_others() {
        let day = 18_649 * 86_400;
        let mut times = Vec::new();
        for second in 0..20_000 {
            times.push(day + second);
            if second % 4 == 0 {
                times.push(second * 17 * SECONDS_MAX % 253_402_300_800);
            }
        }
        let (start, seconds, counts, outside) = picture(&timeline(500, &times));
        assert!(start.unwrap() <= day && seconds <= SECONDS_MAX as u64);
        assert!(outside <= 5_000, "{outside}");
        assert_eq!(counts.iter().sum::<u64>() + outside, 25_000);
    }

    #[test]
    fn the_first_request_may_be_outside_a_fixed_span() {
        let span = super::Span::new(600, 659, 1, 2_880).unwrap();
        let mut timeline = Timeline::of_span(2_880, span);
        timeline.count_all(&[row(0, 200), row(600, 200), row(9_999, 200)]);
        let (start, _, counts, outside) = picture(&timeline);
        assert_eq!((start, counts[0], outside), (Some(600), 1, 2));
    }

    #[test]
    fn selected_requests_are_shown_on_the_axis_of_the_whole_log() {
        let whole = timeline(2_880, &[600, 700, 1_300]);
        let span = |from, last| whole.span_between(from, last).unwrap();
        let mut selected = Timeline::of_span(2_880, span(i64::MIN, i64::MAX));
        selected.count_all(&[row(700, 200)]);
        let (start, seconds, counts, outside) = picture(&selected);
        assert_eq!((start, seconds, outside), (Some(600), 1, 0));
        assert_eq!((counts.len(), counts[100]), (701, 1));
        assert_eq!(
            (span(650, i64::MAX).first, span(650, i64::MAX).last),
            (650, 1_300)
        );
        assert_eq!((span(0, 900).first, span(0, 900).last), (600, 900));
        assert_eq!(whole.span_between(2_000, i64::MAX), None);
        assert_eq!(whole.span_between(i64::MAX, i64::MIN), None);
        let nothing = Timeline::of_span(2_880, span(i64::MIN, i64::MAX));
        assert_eq!(picture(&nothing), (None, 60, vec![], 0));
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
