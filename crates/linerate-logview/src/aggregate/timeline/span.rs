//! The period that a chart shows, and the length of its buckets.

use std::ops::Range;

/// The greatest length of a bucket: 60 × 2^12 seconds, so that 2,880 of them span 22 years. Times
/// that are further apart come from a wrong clock (devices without a battery boot in 1970).
pub(super) const SECONDS_MAX: i64 = 60 << 12;

/// The most bars of less than a minute.
const SHORT_BARS_MAX: i64 = 720;

/// The shortest time without requests, a day, after which requests may be strays.
const STRAY_GAP_SECONDS: i64 = 86_400;
/// The most strays: 3, and one more for every 1,000 other requests.
const STRAYS_MAX: u64 = 3;
const REQUESTS_PER_STRAY: u64 = 1_000;
/// The fewest other requests for each stray.
const REQUESTS_PER_STRAY_MIN: u64 = 30;

/// Returns the next greater length of a bucket. Each is a multiple of the one before.
pub(super) fn longer(seconds: i64) -> i64 {
    match seconds {
        1 => 5,
        5 => 15,
        15 => 60,
        _ => seconds * 2,
    }
}

/// A period in buckets of a fixed length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::aggregate) struct Span {
    /// The first and the last second.
    pub(super) first: i64,
    pub(super) last: i64,
    /// The length of a bucket in seconds.
    pub(super) seconds: i64,
}

impl Span {
    /// Creates a span with the shortest buckets, but not shorter than `seconds_min`, of which at
    /// most `buckets_max` are needed. Returns `None` if even the longest buckets are too short, or
    /// if the span would end before it begins.
    pub(super) fn new(first: i64, last: i64, seconds_min: i64, buckets_max: usize) -> Option<Self> {
        let buckets_max = i64::try_from(buckets_max).unwrap_or(i64::MAX);
        let mut seconds = seconds_min;
        while seconds <= SECONDS_MAX && first <= last {
            let span = Self {
                first,
                last,
                seconds,
            };
            let fits = match seconds {
                ..60 => last - first < SHORT_BARS_MAX.min(buckets_max) * seconds,
                60.. => span.buckets() <= buckets_max,
            };
            if fits {
                return Some(span);
            }
            seconds = longer(seconds);
        }
        None
    }

    /// Returns the number of buckets.
    pub(super) fn buckets(&self) -> i64 {
        self.last.div_euclid(self.seconds) - self.first_number() + 1
    }

    /// Returns the number of the first bucket: its start divided by the length of buckets.
    pub(super) fn first_number(&self) -> i64 {
        self.first.div_euclid(self.seconds)
    }

    /// Returns the span with longer buckets, of which at most `buckets_max` are needed.
    pub(in crate::aggregate) fn with_buckets(mut self, buckets_max: usize) -> Self {
        while self.len() > buckets_max.max(1) {
            self.seconds = longer(self.seconds);
        }
        self
    }

    /// Returns the number of buckets.
    pub(in crate::aggregate) fn len(&self) -> usize {
        usize::try_from(self.buckets()).unwrap_or(0)
    }

    /// Returns when the first bucket begins.
    pub(in crate::aggregate) fn start(self) -> i64 {
        self.first_number() * self.seconds
    }

    pub(in crate::aggregate) fn bucket_seconds(self) -> u64 {
        self.seconds.unsigned_abs()
    }

    /// Returns the bucket of a time, from 0; `None` if it is not in the span.
    pub(in crate::aggregate) fn bucket_of(&self, time: i64) -> Option<usize> {
        if !self.contains(time) {
            return None;
        }
        let bucket = time.div_euclid(self.seconds) - self.first_number();
        usize::try_from(bucket).ok()
    }

    pub(super) fn contains(&self, time: i64) -> bool {
        (self.first..=self.last).contains(&time)
    }
}

/// Returns the buckets without strays: without the few requests that are so far from all others
/// that the time between them would take a third of the axis or more. `buckets` are the numbers of
/// buckets of `seconds`, in ascending order, and their requests.
///
/// The result fits into `buckets_max` buckets of [`SECONDS_MAX`]. If necessary, the smaller part is
/// left out even if it is not small.
pub(super) fn without_strays(
    buckets: &[(i64, u64)],
    seconds: i64,
    buckets_max: usize,
) -> Range<usize> {
    let mut part = 0..buckets.len();
    loop {
        let list = &buckets[part.clone()];
        let gaps = list.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let Some((gap, before)) = gaps.zip(1..).max_by_key(|(gap, _)| *gap) else {
            return part;
        };
        let (left, right) = list.split_at(before);
        let requests = |list: &[(i64, u64)]| list.iter().map(|(_, requests)| requests).sum::<u64>();
        let [on_left, on_right] = [left, right].map(requests);
        let is_left_main = on_left > on_right;
        let (requests, strays) = (on_left.max(on_right), on_left.min(on_right));
        let are_few = strays <= STRAYS_MAX + requests / REQUESTS_PER_STRAY
            && strays.saturating_mul(REQUESTS_PER_STRAY_MIN) <= requests;
        let are_far = (gap - 1) * seconds >= STRAY_GAP_SECONDS && gap * 3 >= len(list);
        if are_few && are_far || !fits(list, seconds, buckets_max) {
            part = match is_left_main {
                true => part.start..part.start + before,
                false => part.start + before..part.end,
            };
        } else {
            return part;
        }
    }
}

/// Returns the number of buckets from the first to the last.
fn len(buckets: &[(i64, u64)]) -> i64 {
    match (buckets.first(), buckets.last()) {
        (Some((first, _)), Some((last, _))) => last - first + 1,
        _ => 0,
    }
}

fn fits(buckets: &[(i64, u64)], seconds: i64, buckets_max: usize) -> bool {
    let (Some((first, _)), Some((last, _))) = (buckets.first(), buckets.last()) else {
        return true;
    };
    let last_second = last * seconds + seconds - 1;
    Span::new(first * seconds, last_second, SECONDS_MAX, buckets_max).is_some()
}

#[cfg(test)]
mod tests {
    use super::{SECONDS_MAX, Span, without_strays};

    const DAY: i64 = 86_400;

    #[test]
    fn short_spans_have_short_buckets() {
        let seconds = |span: i64| {
            let span = Span::new(1_000_000, 1_000_000 + span, 1, 2_880).unwrap();
            assert!(span.buckets() <= 721 || span.seconds >= 60 && span.buckets() <= 2_880);
            span.seconds
        };
        let spans = [0, 719, 720, 3_599, 3_600, 10_799, 10_800, 170_000, 172_800];
        assert_eq!(spans.map(seconds), [1, 1, 5, 5, 15, 15, 60, 60, 120]);
    }

    #[test]
    fn buckets_grow_until_few_are_left() {
        let span = Span::new(90, 3_700, 1, 2_880).unwrap();
        let few = span.with_buckets(40);
        assert_eq!((few.seconds, few.len(), few.start()), (120, 31, 0));
        assert_eq!(
            [90, 119, 120, 3_700].map(|it| few.bucket_of(it)),
            [Some(0), Some(0), Some(1), Some(30)]
        );
        assert_eq!([89, 3_701].map(|it| few.bucket_of(it)), [None; 2]);
        assert_eq!(span.with_buckets(0).len(), 1);
    }

    #[test]
    fn spans_of_more_than_the_longest_buckets_do_not_exist() {
        assert!(Span::new(0, 4 * SECONDS_MAX - 1, 1, 4).is_some());
        assert_eq!(Span::new(0, 4 * SECONDS_MAX, 1, 4), None);
        assert_eq!(Span::new(1, 0, 1, 4), None);
    }

    /// Returns the first and the last of the buckets of a second that are not strays.
    fn main_part(buckets: &[(i64, u64)]) -> (i64, i64) {
        let part = &buckets[without_strays(buckets, 1, 2_880)];
        (part[0].0, part[part.len() - 1].0)
    }

    #[test]
    fn few_requests_far_from_all_others_are_strays() {
        let today = 18_649 * DAY;
        let log = |before: i64, after: i64, strays: u64| {
            main_part(&[
                (today - before, strays),
                (today, 5_000),
                (today + 3_600, 5_000),
                (today + after, strays),
            ])
        };
        let main = (today, today + 3_600);
        assert_eq!(log(today, 300_000 * DAY, 13), main);
        assert_eq!(log(30 * DAY, 30 * DAY, 2), main);
        // Not far enough, and too many.
        assert_eq!(log(DAY, 7_200, 1), (today - DAY, today + 7_200));
        assert_eq!(log(30 * DAY, 7_200, 20).0, today - 30 * DAY);
    }

    #[test]
    fn few_requests_have_no_strays_unless_they_are_decades_apart() {
        assert_eq!(main_part(&[(0, 1), (400 * DAY, 2)]), (0, 400 * DAY));
        let now = 18_649 * DAY;
        assert_eq!(main_part(&[(5, 1), (now, 2)]), (now, now));
        assert_eq!(main_part(&[(5, 3), (now, 2)]), (5, 5));
    }

    #[test]
    fn quiet_times_of_a_log_are_not_strays() {
        let hours: Vec<_> = (0..168).map(|hour| (hour * 3_600, 1)).collect();
        let buckets = [&hours[..], &[(168 * 3_600, 1_000_000)]].concat();
        assert_eq!(main_part(&buckets), (0, 168 * 3_600));
    }
}
