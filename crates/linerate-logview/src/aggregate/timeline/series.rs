//! A number for each time bucket.

use std::collections::{BTreeMap, VecDeque};

use crate::aggregate::dictionary::{Dictionary, FIRST, NONE, OTHER, OTHER_NAME};

/// A number for each bucket.
#[derive(Debug, Default)]
pub(super) struct Series(VecDeque<u64>);

impl Series {
    fn zeros(buckets: usize) -> Self {
        Self(std::iter::repeat_n(0, buckets).collect())
    }

    #[inline]
    pub(super) fn add(&mut self, bucket: usize, number: u64) {
        let sum = &mut self.0[bucket];
        *sum = sum.saturating_add(number);
    }

    /// Adds empty buckets at both ends.
    pub(super) fn grow(&mut self, before: usize, after: usize) {
        (0..before).for_each(|_| self.0.push_front(0));
        (0..after).for_each(|_| self.0.push_back(0));
    }

    /// Resets the series to one empty bucket.
    pub(super) fn restart(&mut self) {
        self.0.clear();
        self.0.push_back(0);
    }

    /// Merges every two buckets. If `is_odd`, the first bucket is the second of its pair.
    pub(super) fn merge_neighbours(&mut self, is_odd: bool) {
        let odd = usize::from(is_odd);
        for place in 0..self.0.len() {
            let number = std::mem::take(&mut self.0[place]);
            self.add((place + odd) / 2, number);
        }
        self.0.truncate((self.0.len() + odd).div_ceil(2));
    }

    pub(super) fn to_vec(&self) -> Vec<u64> {
        self.0.iter().copied().collect()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
    }

    fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A series for each of the first values of a dimension, and one for all others.
#[derive(Debug)]
pub(super) struct ByCode {
    /// The series of the others, followed by those of values in the order of their codes.
    lists: Vec<Series>,
    values_max: usize,
}

impl ByCode {
    pub(super) fn new(values_max: usize) -> Self {
        Self {
            lists: Vec::new(),
            values_max,
        }
    }

    /// Counts a request in the series of its value, if it has one.
    #[inline]
    pub(super) fn add(&mut self, code: u32, bucket: usize, buckets: usize) {
        if code == NONE {
            return;
        }
        let mut list = (code - OTHER) as usize;
        if list > self.values_max {
            list = 0;
        }
        while self.lists.len() <= list {
            self.lists.push(Series::zeros(buckets));
        }
        self.lists[list].add(bucket, 1);
    }

    pub(super) fn all_series(&mut self) -> impl Iterator<Item = &mut Series> {
        self.lists.iter_mut()
    }

    /// Returns the series of the most frequent values, and the sum of all others under `(other)`.
    pub(super) fn report(
        &self,
        names: &Dictionary,
        values_max: usize,
    ) -> BTreeMap<String, Vec<u64>> {
        let Some((others, lists)) = self.lists.split_first() else {
            return BTreeMap::new();
        };
        let mut sums: Vec<_> = lists.iter().map(Series::sum).zip(0..).collect();
        sums.retain(|(sum, _)| *sum > 0);
        sums.sort_unstable_by_key(|&(sum, at)| (std::cmp::Reverse(sum), names.value(at + FIRST)));
        let mut others = others.to_vec();
        let mut report = BTreeMap::new();
        for (place, (_, at)) in sums.into_iter().enumerate() {
            let list = lists[at as usize].to_vec();
            if place < values_max {
                report.insert(names.text(at + FIRST), list);
            } else {
                others.iter_mut().zip(list).for_each(|(sum, it)| *sum += it);
            }
        }
        if others.iter().any(|&number| number > 0) {
            report.insert(OTHER_NAME.to_string(), others);
        }
        report
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let lists: usize = self.lists.iter().map(Series::memory_bytes).sum();
        lists + self.lists.capacity() * size_of::<Series>()
    }
}
