//! Lists the values of a field in the order of a figure, in two passes over the requests: the first
//! counts all values, and the second measures how long the requests of the listed ones took.

use super::by_code::at;
use super::dictionaries::Dictionaries;
use super::dictionary::{FIRST, OTHER};
use super::groups::Groups;
use super::latency::{Durations, RELATIVE_ERROR};
use super::ranking::highest;
use super::tally::Tally;
use crate::excerpt::text;
use crate::query::{Field, ListQuery, SortKey};
use crate::store::Row;
use crate::summary::{ListedValue, ValueLatency, ValueList};

/// The values of a field that are being counted.
#[derive(Debug)]
pub(super) struct ValueSearch {
    field: Field,
    by: SortKey,
    ascending: bool,
    top_max: usize,
    groups: Groups,
    /// The figures of all values, by their numbers.
    sums: Vec<Sum>,
    /// The listed values in order, in the second pass.
    listed: Vec<Listed>,
    /// For each value, its place in `listed`, if it is listed.
    places: Vec<Option<u8>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    tally: Tally,
    /// How many requests have a duration.
    durations: u64,
    /// The sum of the durations in microseconds, capped at 2^64 - 1.
    duration_us: u64,
    max_us: u64,
}

#[derive(Debug)]
struct Listed {
    number: u32,
    durations: Durations,
}

impl ValueSearch {
    pub(super) fn new(field: Field, query: &ListQuery, groups: Groups) -> Self {
        Self {
            field,
            by: query.by,
            ascending: query.ascending,
            top_max: query.top_max,
            groups,
            sums: Vec::new(),
            listed: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Counts requests.
    pub(super) fn count_all(&mut self, rows: &[Row]) {
        for row in rows {
            let number = self.groups.of(row);
            if self.is_first_pass() {
                at(&mut self.sums, number).count(row);
            } else if let Some(duration) = row.duration
                && let Some(Some(place)) = self.places.get(number as usize)
                && let Some(listed) = self.listed.get_mut(usize::from(*place))
            {
                listed.durations.count(duration);
            }
        }
    }

    /// Returns whether the first pass has not ended.
    pub(super) fn is_first_pass(&self) -> bool {
        self.listed.is_empty()
    }

    /// Ends a pass. Returns whether another one is needed.
    pub(super) fn end_pass(&mut self, dictionaries: &Dictionaries) -> bool {
        if !self.is_first_pass() {
            return false;
        }
        let candidates = (0..).zip(&self.sums).filter(|(number, sum)| {
            // No list has values that are not tracked.
            *number != OTHER && sum.tally.requests > 0
        });
        let candidates = candidates.map(|(number, sum)| {
            let value = self.groups.value(number, dictionaries);
            (self.rank(sum), value, number)
        });
        let listed = highest(self.top_max, candidates).into_iter();
        self.listed = listed
            .map(|(_, _, number)| Listed {
                number,
                durations: Durations::default(),
            })
            .collect();
        self.places = vec![None; self.sums.len()];
        for (place, listed) in (0..).zip(&self.listed) {
            self.places[listed.number as usize] = Some(place);
        }
        let mut listed = self.listed.iter();
        listed.any(|it| self.sums[it.number as usize].durations > 0)
    }

    /// Returns the list.
    pub(super) fn list(&self, dictionaries: &Dictionaries) -> ValueList {
        let counted = self.sums.iter().skip(FIRST as usize);
        let counted = counted.filter(|sum| sum.tally.requests > 0);
        let others = self.sums.get(OTHER as usize).copied().unwrap_or_default();
        let others = others.tally.requests;
        ValueList {
            field: self.field.name(),
            requests: self.sums.iter().map(|sum| sum.tally.requests).sum(),
            distinct: counted.count() as u64,
            not_counted: others,
            values: self
                .listed
                .iter()
                .map(|it| self.entry(it, dictionaries))
                .collect(),
            error: RELATIVE_ERROR,
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let listed = self.listed.iter();
        let durations = listed.map(|it| size_of::<Listed>() + it.durations.memory_bytes());
        size_of::<Self>()
            + self.groups.memory_bytes()
            + self.sums.capacity() * size_of::<Sum>()
            + self.places.capacity() * size_of::<Option<u8>>()
            + durations.sum::<usize>()
    }

    /// Returns the figure by which a value is sorted, from 1; a higher one comes first.
    fn rank(&self, sum: &Sum) -> u64 {
        let figure = match self.by {
            SortKey::Bytes => sum.tally.bytes,
            SortKey::Errors => sum.tally.errors(),
            SortKey::Mean => sum.mean_us(),
            SortKey::Requests => sum.tally.requests,
            SortKey::Slowest => sum.max_us,
        };
        match self.ascending {
            true => u64::MAX - figure.min(u64::MAX - 1),
            false => figure.saturating_add(1),
        }
    }

    fn entry(&self, listed: &Listed, dictionaries: &Dictionaries) -> ListedValue {
        let sum = &self.sums[listed.number as usize];
        let latency = listed.durations.summary().map(|it| ValueLatency {
            count: it.count,
            mean_us: sum.mean_us(),
            p50_us: it.p50_us,
            p90_us: it.p90_us,
            p99_us: it.p99_us,
            p999_us: it.p999_us,
            max_us: it.max_us,
        });
        ListedValue {
            value: text(self.groups.value(listed.number, dictionaries)),
            requests: sum.tally.requests,
            bytes: sum.tally.bytes,
            errors: sum.tally.errors(),
            latency,
        }
    }
}

impl Sum {
    fn count(&mut self, row: &Row) {
        self.tally.count(row.status, row.bytes_sent);
        if let Some(duration) = row.duration {
            self.durations += 1;
            self.duration_us = self.duration_us.saturating_add(duration);
            self.max_us = self.max_us.max(duration);
        }
    }

    fn mean_us(&self) -> u64 {
        self.duration_us.checked_div(self.durations).unwrap_or(0)
    }
}
