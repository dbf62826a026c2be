//! A number for each time bucket.

use std::collections::BTreeMap;

use crate::aggregate::dictionary::{Dictionary, FIRST, NONE, OTHER, OTHER_NAME};

/// A number for each bucket, in the order in which buckets were added.
#[derive(Debug, Default)]
pub(super) struct Series(Vec<u64>);

/// Where each bucket of a series goes in another list, and the length of that list. A bucket
/// without a place is left out; buckets with the same place are added up.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) of: Vec<Option<usize>>,
    pub(super) len: usize,
}

impl Series {
    fn zeros(buckets: usize) -> Self {
        Self(vec![0; buckets])
    }

    #[inline]
    pub(super) fn add(&mut self, bucket: usize, number: u64) {
        let sum = &mut self.0[bucket];
        *sum = sum.saturating_add(number);
    }

    /// Adds an empty bucket.
    pub(super) fn push(&mut self) {
        self.0.push(0);
    }

    pub(super) fn of(&self, bucket: usize) -> u64 {
        self.0[bucket]
    }

    /// Moves the buckets to other places.
    pub(super) fn rearrange(&mut self, places: &Places) {
        let moved = self.arranged(places);
        self.0.clear();
        self.0.extend(moved);
    }

    /// Returns the numbers in other places.
    pub(super) fn arranged(&self, places: &Places) -> Vec<u64> {
        let mut list = Self::zeros(places.len);
        for (&number, place) in self.0.iter().zip(&places.of) {
            if let Some(place) = place {
                list.add(*place, number);
            }
        }
        list.0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.0.capacity() * size_of::<u64>()
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
        places: &Places,
    ) -> BTreeMap<String, Vec<u64>> {
        let mut lists = self.lists.iter().map(|list| list.arranged(places));
        let Some(mut others) = lists.next() else {
            return BTreeMap::new();
        };
        let mut values: Vec<_> = (FIRST..)
            .zip(lists)
            .map(|(code, list)| (list.iter().sum::<u64>(), code, list))
            .filter(|(sum, ..)| *sum > 0)
            .collect();
        values.sort_unstable_by_key(|&(sum, code, _)| (std::cmp::Reverse(sum), names.value(code)));
        let mut report = BTreeMap::new();
        for (place, (_, code, list)) in values.into_iter().enumerate() {
            if place < values_max {
                report.insert(names.text(code), list);
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
