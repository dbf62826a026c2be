//! A query that is answered in steps, so that other work can be done in between.

use std::ops::Range;

use super::filter::Filter;
use super::tallies::Tallies;
use crate::store::{BLOCK_ROWS, Row};

/// How many requests a step examines: some milliseconds of work.
const STEP_ROWS: u64 = 64 * BLOCK_ROWS as u64;

/// A query under way. It covers the requests that were stored when it began.
#[derive(Debug)]
pub(crate) struct Search {
    pub(super) filter: Filter,
    /// The requests that have not been examined, by their number among all requests, from 0.
    rest: Range<u64>,
    found: u64,
    pub(super) wanted: Wanted,
}

/// What a query returns.
#[derive(Debug)]
pub(super) enum Wanted {
    /// The figures of the selected requests.
    Figures {
        tallies: Box<Tallies>,
        top_max: usize,
    },
    /// The numbers of up to `rows_max` selected requests after the first `offset`.
    Rows {
        requests: Vec<u64>,
        offset: u64,
        rows_max: usize,
    },
}

impl Search {
    pub(super) fn new(filter: Filter, stored: Range<u64>, wanted: Wanted) -> Self {
        Self {
            filter,
            rest: stored,
            found: 0,
            wanted,
        }
    }

    /// Returns the requests that the next step examines; empty at the end.
    pub(super) fn step(&mut self) -> Range<u64> {
        let end = self.rest.end.min(self.rest.start.saturating_add(STEP_ROWS));
        let step = self.rest.start..end;
        self.rest.start = end;
        step
    }

    /// Returns whether all requests were examined.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Adds selected requests, which have these numbers.
    pub(super) fn add(&mut self, numbers: &[u64], rows: &[Row]) {
        match &mut self.wanted {
            Wanted::Figures { tallies, .. } => tallies.count_all(rows),
            Wanted::Rows {
                requests,
                offset,
                rows_max,
            } => {
                let skipped = offset.saturating_sub(self.found);
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                let room = *rows_max - requests.len();
                requests.extend(numbers.iter().skip(skipped).take(room));
            }
        }
        self.found += rows.len() as u64;
    }

    /// Returns how many requests were selected so far.
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    /// Returns which share of the requests was examined, 0 to 1.
    pub(crate) fn fraction(&self) -> f64 {
        match self.rest.end {
            0 => 1.0,
            end => self.rest.start as f64 / end as f64,
        }
    }

    /// Returns approximately how many bytes of heap the search holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let wanted = match &self.wanted {
            Wanted::Figures { tallies, .. } => size_of::<Tallies>() + tallies.memory_bytes(),
            Wanted::Rows { requests, .. } => requests.capacity() * size_of::<u64>(),
        };
        wanted + self.filter.memory_bytes()
    }
}
