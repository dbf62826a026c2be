//! A query that is answered in steps, so that other work can be done in between.

use std::ops::Range;

use super::dictionaries::Dictionaries;
use super::filter::Filter;
use super::latency_series::LatencySeries;
use super::rates::RateSearch;
use super::tallies::Tallies;
use super::value_search::ValueSearch;
use crate::query::ChangesQuery;
use crate::store::{BLOCK_ROWS, LineSearch, Row};

/// How many requests a step examines: some milliseconds of work.
const STEP_ROWS: u64 = 64 * BLOCK_ROWS as u64;
/// The same if their lines are searched, which takes ten times as long.
const STEP_LINES: u64 = 6 * BLOCK_ROWS as u64;

/// A query under way. It covers the requests that were stored when it began.
///
/// ```
/// use linerate_logview::aggregate::{Aggregator, Answer, Limits};
/// use linerate_logview::query::RowsQuery;
///
/// let mut limits = Limits::default();
/// limits.line_bytes_sum_max = 1 << 20;
/// let mut log = Aggregator::new(limits);
/// log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 200 654\n");
/// let query = RowsQuery { limit: 10, containing: "get /a".to_owned(), ..RowsQuery::default() };
/// let mut search = log.search_rows(&query)?;
/// let answer = loop {
///     if let Some(answer) = log.advance(&mut search)? {
///         break answer;
///     }
/// };
/// assert!(matches!(answer, Answer::Rows(rows) if rows.total == 1));
/// # Ok::<(), linerate_logview::query::QueryError>(())
/// ```
#[derive(Debug)]
pub struct Search {
    pub(super) filter: Filter,
    /// The requests that are examined, by their number among all requests, from 0.
    stored: Range<u64>,
    /// Those of them that have not been examined.
    rest: Range<u64>,
    found: u64,
    pub(super) wanted: Wanted,
}

/// What a query returns.
#[derive(Debug)]
pub(super) enum Wanted {
    /// The values that explain the difference between two periods.
    Changes(Box<Comparison>),
    /// The figures of the selected requests.
    Figures {
        tallies: Box<Tallies>,
        top_max: usize,
    },
    /// How long the selected requests took over time.
    Latency(Box<LatencySeries>),
    /// The clients that exceed a limit.
    Rates(Box<RateSearch>),
    /// The numbers of up to `rows_max` selected requests after the first `offset`. With a search,
    /// only those whose lines contain its text count.
    Rows {
        requests: Vec<u64>,
        search: Option<LineSearch>,
        offset: u64,
        rows_max: usize,
    },
    /// The values of a field.
    Values(Box<ValueSearch>),
}

/// The requests of two periods, which are examined one after the other.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) query: ChangesQuery,
    pub(super) before: Tallies,
    pub(super) after: Tallies,
    /// Selects the requests of the period `after`, until they are examined.
    pub(super) next: Option<Filter>,
}

impl Search {
    pub(super) fn new(filter: Filter, stored: Range<u64>, wanted: Wanted) -> Self {
        Self {
            filter,
            rest: stored.clone(),
            stored,
            found: 0,
            wanted,
        }
    }

    /// Returns the requests that the next step examines; empty at the end.
    pub(super) fn step(&mut self) -> Range<u64> {
        let length = match &self.wanted {
            Wanted::Rows {
                search: Some(_), ..
            } => STEP_LINES,
            _ => STEP_ROWS,
        };
        let end = self.rest.end.min(self.rest.start.saturating_add(length));
        let step = self.rest.start..end;
        self.rest.start = end;
        step
    }

    /// Ends a step. Returns whether all requests were examined as often as necessary.
    pub(super) fn end_step(&mut self, dictionaries: &Dictionaries) -> bool {
        if !self.rest.is_empty() {
            return false;
        }
        let needs_another_pass = match &mut self.wanted {
            Wanted::Changes(comparison) => match comparison.next.take() {
                Some(next) => {
                    self.filter = next;
                    true
                }
                None => false,
            },
            Wanted::Values(values) => values.end_pass(dictionaries),
            Wanted::Figures { .. }
            | Wanted::Latency(_)
            | Wanted::Rates(_)
            | Wanted::Rows { .. } => false,
        };
        if needs_another_pass {
            self.rest = self.stored.clone();
        }
        !needs_another_pass
    }

    /// Adds selected requests, which have these numbers.
    pub(super) fn add(&mut self, numbers: &[u64], rows: &[Row]) {
        match &mut self.wanted {
            Wanted::Changes(comparison) => comparison.current().count_all(rows),
            Wanted::Figures { tallies, .. } => tallies.count_all(rows),
            Wanted::Latency(latency) => latency.count_all(rows),
            Wanted::Values(values) => values.count_all(rows),
            Wanted::Rows {
                requests,
                offset,
                rows_max,
                ..
            } => {
                let skipped = offset.saturating_sub(self.found);
                let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
                let room = *rows_max - requests.len();
                requests.extend(numbers.iter().skip(skipped).take(room));
            }
            // It has passes of its own.
            Wanted::Rates(_) => {}
        }
        self.found += numbers.len() as u64;
    }

    /// Returns how many requests were selected so far.
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    /// Returns which share of the requests was examined, 0 to 1.
    pub fn fraction(&self) -> f64 {
        if let Wanted::Rates(rates) = &self.wanted {
            return rates.fraction();
        }
        let examined = match self.rest.end {
            0 => 1.0,
            end => self.rest.start as f64 / end as f64,
        };
        let is_first = match &self.wanted {
            Wanted::Changes(comparison) => comparison.next.is_some(),
            Wanted::Values(values) => values.is_first_pass(),
            Wanted::Figures { .. }
            | Wanted::Latency(_)
            | Wanted::Rates(_)
            | Wanted::Rows { .. } => return examined,
        };
        let before = if is_first { 0.0 } else { 0.5 };
        before + examined / 2.0
    }

    /// Returns approximately how many bytes of heap the search holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let wanted = match &self.wanted {
            Wanted::Changes(comparison) => comparison.memory_bytes(),
            Wanted::Figures { tallies, .. } => size_of::<Tallies>() + tallies.memory_bytes(),
            Wanted::Latency(latency) => latency.memory_bytes(),
            Wanted::Rates(rates) => size_of::<RateSearch>() + rates.memory_bytes(),
            Wanted::Rows {
                requests, search, ..
            } => {
                let search = search.as_ref().map_or(0, LineSearch::memory_bytes);
                requests.capacity() * size_of::<u64>() + search
            }
            Wanted::Values(values) => values.memory_bytes(),
        };
        wanted + self.filter.memory_bytes()
    }
}

impl Comparison {
    /// Returns the counters of the period that is being examined.
    fn current(&mut self) -> &mut Tallies {
        match self.next {
            Some(_) => &mut self.before,
            None => &mut self.after,
        }
    }

    fn memory_bytes(&self) -> usize {
        let next = self.next.as_ref();
        size_of::<Self>()
            + self.before.memory_bytes()
            + self.after.memory_bytes()
            + next.map_or(0, Filter::memory_bytes)
    }
}
