//! Compares what was published with what a subscriber saw.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

/// How soon a subscriber must be told what it has missed.
const ANNOUNCED_MAX: Duration = Duration::from_secs(5);

/// The numbers that were published in a channel, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Published {
    /// Numbers whose publication was acknowledged, in ascending order.
    acknowledged: Vec<u64>,
    /// Numbers whose publication was refused or not answered. It is unknown whether and when they
    /// are published.
    unknown: HashSet<u64>,
}

/// An observation of a subscriber.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Seen {
    /// The subscriber was told that publications may be missing.
    Gap,
    /// The publication with this number.
    Number(u64),
}

/// The verdict on a subscriber. `lost`, `duplicated` and `reordered` must be 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Verdict {
    /// Number of publications that arrived.
    pub(crate) received: u64,
    /// Number of missing publications for which the subscriber was told of a gap in time.
    pub(crate) announced: u64,
    /// Number of missing publications without such a notice.
    pub(crate) lost: u64,
    /// Number of publications that arrived more than once.
    pub(crate) duplicated: u64,
    /// Number of publications that arrived after one with a higher number.
    pub(crate) reordered: u64,
    /// Number of gaps that the subscriber was told of.
    pub(crate) gaps: u64,
}

impl Published {
    pub(crate) fn acknowledge(&mut self, number: u64) {
        self.acknowledged.push(number);
    }

    pub(crate) fn doubt(&mut self, number: u64) {
        self.unknown.insert(number);
    }

    pub(crate) fn unknown(&self) -> u64 {
        self.unknown.len() as u64
    }

    pub(crate) fn len(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// Returns the highest acknowledged number.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.acknowledged.last().copied()
    }

    /// Returns what is wrong with the numbers that were stored elsewhere: all that were
    /// acknowledged must be there, once and in order.
    pub(crate) fn judge_stored(&self, stored: &[u64]) -> Option<String> {
        let at = Instant::now();
        let seen = stored.iter().map(|number| (at, Seen::Number(*number)));
        let verdict = self.judge(&seen.collect::<Vec<_>>());
        let all: HashSet<u64> = stored.iter().copied().collect();
        let lost = self.missing(0, u64::MAX, &all);
        let is_right = lost + verdict.duplicated + verdict.reordered == 0;
        (!is_right).then(|| format!("{lost} lost: {verdict:?}"))
    }

    /// Judges what a subscriber saw, starting with the first number that it saw.
    pub(crate) fn judge(&self, seen: &[(Instant, Seen)]) -> Verdict {
        let mut verdict = Verdict::default();
        let all: HashSet<u64> = seen.iter().filter_map(|(_, seen)| seen.number()).collect();
        let mut numbers = HashSet::new();
        let mut newest = None;
        let mut is_announced = false;
        for (index, (at, seen_now)) in seen.iter().enumerate() {
            let Some(number) = seen_now.number() else {
                verdict.gaps += 1;
                is_announced = true;
                continue;
            };
            verdict.received += 1;
            if !numbers.insert(number) {
                verdict.duplicated += 1;
                continue;
            }
            if self.unknown.contains(&number) {
                // The broker may have accepted it after numbers that were published later.
                continue;
            }
            let Some(before) = newest.replace(number) else {
                is_announced = false;
                continue;
            };
            if number < before {
                newest = Some(before);
                verdict.reordered += 1;
                continue;
            }
            let missing = self.missing(before, number, &all);
            if missing > 0 && !is_announced && !is_announced_soon(&seen[index..], *at) {
                verdict.lost += missing;
            } else {
                verdict.announced += missing;
            }
            is_announced = false;
        }
        // Publications at the end that never arrived are missing as well.
        let missing = self.missing(newest.unwrap_or(0), u64::MAX, &all);
        match is_announced {
            true => verdict.announced += missing,
            false => verdict.lost += missing,
        }
        verdict
    }

    /// Returns how many acknowledged numbers between `before` and `after` are not in `all`, the
    /// numbers that were seen.
    fn missing(&self, before: u64, after: u64, all: &HashSet<u64>) -> u64 {
        let first = self
            .acknowledged
            .partition_point(|number| *number <= before);
        let end = self.acknowledged.partition_point(|number| *number < after);
        let between = &self.acknowledged[first..end.max(first)];
        between
            .iter()
            .filter(|number| !all.contains(number))
            .count() as u64
    }
}

impl Seen {
    /// Returns the number, or `None` for a gap.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Gap => None,
            Self::Number(number) => Some(number),
        }
    }
}

fn is_announced_soon(seen: &[(Instant, Seen)], since: Instant) -> bool {
    let soon = seen
        .iter()
        .take_while(|(at, _)| *at - since < ANNOUNCED_MAX);
    soon.into_iter().any(|(_, seen)| seen.number().is_none())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Published, Seen, Verdict};

    fn published(count: u64) -> Published {
        let mut published = Published::default();
        for number in 1..=count {
            published.acknowledge(number);
        }
        published
    }

    /// Judges a sequence of numbers, in which 0 stands for a gap. One second passes between them.
    fn judge(published: &Published, seen: &[u64]) -> Verdict {
        let start = Instant::now();
        let seen = seen.iter().zip(0..).map(|(number, second)| {
            let seen = match number {
                0 => Seen::Gap,
                number => Seen::Number(*number),
            };
            (start + Duration::from_secs(second), seen)
        });
        published.judge(&seen.collect::<Vec<_>>())
    }

    #[test]
    fn a_subscriber_that_saw_everything_misses_nothing() {
        let verdict = judge(&published(4), &[1, 2, 3, 4]);
        let received = 4;
        assert_eq!(
            verdict,
            Verdict {
                received,
                ..Verdict::default()
            }
        );
        // A subscriber may start later.
        assert_eq!(judge(&published(4), &[3, 4]).lost, 0);
    }

    #[test]
    fn what_is_missing_is_lost_unless_that_was_said() {
        assert_eq!(judge(&published(4), &[1, 4]).lost, 2);
        assert_eq!(judge(&published(4), &[1, 2]).lost, 2);
        assert_eq!(judge(&published(4), &[]).lost, 4);
        let verdict = judge(&published(4), &[1, 0, 4]);
        assert_eq!((verdict.lost, verdict.announced, verdict.gaps), (0, 2, 1));
        let verdict = judge(&published(4), &[1, 2, 0]);
        assert_eq!((verdict.lost, verdict.announced), (0, 2));
    }

    #[test]
    fn an_announcement_covers_one_hole_and_comes_within_five_seconds() {
        let verdict = judge(&published(9), &[1, 0, 3, 5, 6, 7, 8, 9]);
        assert_eq!((verdict.announced, verdict.lost), (1, 1));
        let verdict = judge(&published(9), &[1, 3, 4, 5, 6, 0, 7, 8, 9]);
        assert_eq!((verdict.announced, verdict.lost), (1, 0));
        let verdict = judge(&published(9), &[1, 3, 4, 5, 6, 7, 0, 8, 9]);
        assert_eq!((verdict.announced, verdict.lost), (0, 1));
    }

    #[test]
    fn what_nobody_knows_may_be_missing_or_late_but_comes_once() {
        let mut unknown = published(2);
        unknown.doubt(3);
        unknown.acknowledge(4);
        unknown.acknowledge(5);
        for seen in [&[1, 2, 4, 5][..], &[1, 2, 3, 4, 5], &[1, 2, 4, 3, 5]] {
            let verdict = judge(&unknown, seen);
            assert_eq!((verdict.lost, verdict.reordered), (0, 0), "{seen:?}");
        }
        assert_eq!(judge(&unknown, &[1, 2, 3, 4, 3, 5]).duplicated, 1);
        assert_eq!(judge(&unknown, &[1, 2, 3, 5]).lost, 1);
        assert_eq!(unknown.unknown(), 1);
    }

    #[test]
    fn what_is_stored_elsewhere_is_complete_from_the_beginning() {
        let mut published = published(3);
        published.doubt(4);
        for right in [&[1, 2, 3][..], &[1, 2, 3, 4]] {
            assert_eq!(published.judge_stored(right), None);
        }
        for wrong in [&[2, 3][..], &[1, 3], &[1, 2], &[1, 3, 2], &[1, 2, 2, 3]] {
            assert!(published.judge_stored(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn duplicates_and_disorder_are_told_apart() {
        let verdict = judge(&published(3), &[1, 2, 2, 3]);
        assert_eq!((verdict.duplicated, verdict.reordered), (1, 0));
        let verdict = judge(&published(3), &[1, 3, 2]);
        assert_eq!(
            (verdict.duplicated, verdict.reordered, verdict.lost),
            (0, 1, 0)
        );
    }
}
