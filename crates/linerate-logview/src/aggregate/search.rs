//! A query that is answered in steps, so that other work can be done in between.

use std::ops::Range;

use memchr::memmem::Finder;

use super::filter::Filter;
use super::rates::RateSearch;
use super::tallies::Tallies;
use crate::store::{BLOCK_ROWS, Row};

/// How many requests a step examines: some milliseconds of work.
const STEP_ROWS: u64 = 64 * BLOCK_ROWS as u64;

/// A query under way. It covers the requests that were stored when it began.
///
/// ```
/// use linerate_logview::aggregate::{Aggregator, Answer, Limits};
/// use linerate_logview::query::Query;
///
/// let mut limits = Limits::default();
/// limits.line_bytes_sum_max = 1 << 20;
/// let mut log = Aggregator::new(limits);
/// log.handle_input(b"192.0.2.7 - - [22/Jan/2021:01:47:05 +0000] \"GET /a HTTP/1.1\" 200 654\n");
/// let mut search = log.search_rows(&Query::default(), 0, 10)?.with_text("GET /a");
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
    /// The clients that exceed a limit.
    Rates(Box<RateSearch>),
    /// The numbers of up to `rows_max` selected requests after the first `offset`.
    Rows {
        requests: Vec<u64>,
        offset: u64,
        rows_max: usize,
        /// What the lines must contain.
        text: Option<Box<Finder<'static>>>,
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

    /// Finds only lines that contain `text`, among those that are kept: see
    /// [`RowsKept`](crate::summary::RowsKept). A search for figures is not affected.
    #[must_use]
    pub fn with_text(mut self, wanted: &str) -> Self {
        if let Wanted::Rows { text, .. } = &mut self.wanted {
            *text = Some(Box::new(Finder::new(wanted).into_owned()));
        }
        self
    }

    /// Returns what lines must contain.
    pub(super) fn text(&self) -> Option<&Finder<'static>> {
        match &self.wanted {
            Wanted::Rows { text, .. } => text.as_deref(),
            Wanted::Figures { .. } => None,
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
        match self.rest.end {
            0 => 1.0,
            end => self.rest.start as f64 / end as f64,
        }
    }

    /// Returns approximately how many bytes of heap the search holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        let wanted = match &self.wanted {
            Wanted::Figures { tallies, .. } => size_of::<Tallies>() + tallies.memory_bytes(),
            Wanted::Rates(rates) => size_of::<RateSearch>() + rates.memory_bytes(),
            Wanted::Rows { requests, .. } => requests.capacity() * size_of::<u64>(),
        };
        wanted + self.filter.memory_bytes()
    }
}
