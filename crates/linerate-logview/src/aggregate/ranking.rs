//! The values with the highest counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::dictionary::{Dictionary, FIRST, NONE, OTHER};
use super::overflow::Overflow;
use super::tally::Tally;
use crate::excerpt::text;
use crate::summary::{Panel, Ranked};

/// The values of a dimension and their tallies.
#[derive(Clone, Copy)]
pub(super) struct Dimension<'a> {
    pub(super) dictionary: &'a Dictionary,
    /// By code. Shorter than the dictionary if the last values were not counted.
    pub(super) tallies: &'a [Tally],
    /// The values without a code, if they were counted.
    pub(super) overflow: Option<&'a Overflow>,
}

impl<'a> Dimension<'a> {
    /// Returns the panel of the dimension.
    pub(super) fn panel(self, top_max: usize) -> Panel {
        let others = self.tally(OTHER).requests;
        let with_code = self.tallies.iter().skip(FIRST as usize);
        let with_code = with_code.filter(|tally| tally.requests > 0).count() as u64;
        Panel {
            distinct: with_code + self.overflow.map_or(others.min(1), Overflow::distinct),
            exact: others == 0,
            error_max: self.overflow.map_or(others, Overflow::error_max),
            not_counted: others,
            none: self.tally(NONE).requests,
            top: self.top(top_max, |tally| tally.requests),
        }
    }

    /// Returns the values with the highest counts.
    pub(super) fn top(self, top_max: usize, count: impl Fn(&Tally) -> u64) -> Vec<Ranked> {
        let candidates = self.all();
        entries(
            top_max,
            candidates.map(|(value, tally)| (count(tally), value, tally)),
        )
    }

    /// Returns all values with their tallies.
    pub(super) fn all(self) -> impl Iterator<Item = (&'a [u8], &'a Tally)> {
        let tracked = self.overflow.into_iter().flat_map(Overflow::tracked);
        self.with_code()
            .chain(tracked.map(|it| (&*it.text, &it.tally)))
    }

    /// Returns the values that have a code, with their tallies.
    pub(super) fn with_code(self) -> impl Iterator<Item = (&'a [u8], &'a Tally)> {
        let tallies = self.tallies.iter().zip(0..).skip(FIRST as usize);
        tallies.map(move |(tally, code)| (self.dictionary.value(code), tally))
    }

    /// Returns the tally of a code.
    pub(super) fn tally(self, code: u32) -> Tally {
        self.tallies.get(code as usize).copied().unwrap_or_default()
    }
}

/// Returns the `n` candidates with the highest counts above 0, highest first. Candidates with equal
/// counts are in the order of their values.
pub(super) fn highest<'a, T: Ord>(
    n: usize,
    candidates: impl Iterator<Item = (u64, &'a [u8], T)>,
) -> Vec<(u64, &'a [u8], T)> {
    // A heap with the worst of the best candidates on top.
    let mut best = BinaryHeap::new();
    for (count, value, rest) in candidates {
        if count == 0 {
            continue;
        }
        let candidate = (Reverse(count), value, rest);
        if best.len() < n {
            best.push(candidate);
        } else if let Some(mut worst) = best.peek_mut()
            && candidate < *worst
        {
            *worst = candidate;
        }
    }
    let best = best.into_sorted_vec().into_iter();
    best.map(|(count, value, rest)| (count.0, value, rest))
        .collect()
}

/// Returns the entries of the `n` candidates with the highest counts.
pub(super) fn entries<'a>(
    n: usize,
    candidates: impl Iterator<Item = (u64, &'a [u8], &'a Tally)>,
) -> Vec<Ranked> {
    let best = highest(n, candidates).into_iter();
    best.map(|(_, value, tally)| entry(text(value), tally))
        .collect()
}

/// Returns an entry of a list.
pub(super) fn entry(value: String, tally: &Tally) -> Ranked {
    Ranked {
        value,
        requests: tally.requests,
        bytes: tally.bytes,
        errors: tally.errors(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Dimension, highest};
    use crate::aggregate::dictionary::Dictionary;
    use crate::aggregate::overflow::Overflow;
    use crate::aggregate::tally::Tally;

    #[test]
    fn highest_counts_come_first_and_equal_ones_in_order_of_their_values() {
        let counts = [(1, "b"), (3, "c"), (1, "a"), (0, "e"), (2, "d")];
        let expected = [(3, "c"), (2, "d"), (1, "a"), (1, "b")];
        for n in 0..6 {
            let candidates = counts
                .iter()
                .map(|&(count, value)| (count, value.as_bytes(), ()));
            let best = highest(n, candidates);
            let best: Vec<_> = best
                .iter()
                .map(|(count, value, ())| (*count, std::str::from_utf8(value).unwrap()))
                .collect();
            assert_eq!(best, expected[..n.min(4)]);
        }
    }

    #[test]
    fn values_with_and_without_a_code_are_ranked_together() {
        let mut dictionary = Dictionary::new(2, 99);
        let mut tallies = vec![Tally::default(); 4];
        let mut overflow = Overflow::new();
        for value in ["a", "c", "c", "b", "", "a", "c", "b", "b", "c", "b", "b"] {
            let code = dictionary.code(value.as_bytes());
            tallies[code as usize].count(404, 10);
            if code == super::OTHER {
                overflow.count(value.as_bytes(), 404, 10);
            }
        }
        let counted = Dimension {
            dictionary: &dictionary,
            tallies: &tallies,
            overflow: Some(&overflow),
        };
        let panel = counted.panel(9);
        assert_eq!((panel.distinct, panel.exact, panel.none), (3, false, 1));
        assert_eq!((panel.not_counted, panel.error_max), (5, 0));
        let top: Vec<_> = panel
            .top
            .iter()
            .map(|it| (&*it.value, it.requests, it.errors))
            .collect();
        assert_eq!(top, [("b", 5, 5), ("c", 4, 4), ("a", 2, 2)]);
        let without = Dimension {
            overflow: None,
            ..counted
        }
        .panel(1);
        assert_eq!((without.distinct, without.error_max), (3, 5));
        assert_eq!((without.top.len(), &*without.top[0].value), (1, "c"));
    }
}
