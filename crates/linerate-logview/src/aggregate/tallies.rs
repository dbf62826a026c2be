//! The counters of all requests of a log, or of those that a query selected.

use super::by_code::at;
use super::counts::Statuses;
use super::dictionary::OTHER;
use super::latency::Durations;
use super::overflow::Overflow;
use super::peaks::Peaks;
use super::tally::Tally;
use super::timeline::Timeline;
use crate::store::{ADDRESS, METHOD, PATH, Row, TEXTS};

/// The counters, indexed by the codes of values.
#[derive(Debug)]
pub(super) struct Tallies {
    pub(super) requests: u64,
    pub(super) bytes_sent: u64,
    pub(super) requests_without_path: u64,
    /// For each dimension and code.
    pub(super) by_code: [Vec<Tally>; TEXTS.len()],
    pub(super) peaks: Peaks,
    pub(super) statuses: Statuses,
    pub(super) timeline: Timeline,
    pub(super) durations: Durations,
    /// The values without a code, for each dimension that has any.
    pub(super) overflows: [Option<Box<Overflow>>; TEXTS.len()],
}

impl Tallies {
    /// Creates counters that are zero. `minutes_max` is the length of the list of [`Peaks`].
    pub(super) fn new(timeline: Timeline, minutes_max: usize) -> Self {
        Self {
            requests: 0,
            bytes_sent: 0,
            requests_without_path: 0,
            by_code: Default::default(),
            peaks: Peaks::new(minutes_max),
            statuses: Statuses::new(),
            timeline,
            durations: Durations::default(),
            overflows: Default::default(),
        }
    }

    /// Counts requests, counter by counter.
    pub(super) fn count_all(&mut self, rows: &[Row]) {
        let mut all = Tally::default();
        for row in rows {
            all.count(row.status, row.bytes_sent);
            self.requests_without_path += u64::from(row.codes[METHOD] | row.codes[PATH] == 0);
            self.statuses.count(row.status, row.bytes_sent);
            if let Some(duration) = row.duration {
                self.durations.count(duration);
            }
        }
        self.requests += all.requests;
        self.bytes_sent = self.bytes_sent.saturating_add(all.bytes);
        self.timeline.count_all(rows);
        self.count_codes(rows, &all);
        for row in rows {
            self.peaks.count(row.codes[ADDRESS], row.time);
        }
    }

    /// Counts the values of requests. `all` is the tally of all of these requests together.
    fn count_codes(&mut self, rows: &[Row], all: &Tally) {
        for (text, tallies) in self.by_code.iter_mut().enumerate() {
            let codes = rows.iter().map(|row| row.codes[text]);
            // Common: a log without hosts has the same host code everywhere.
            if let Some(code) = only(codes.clone()) {
                at(tallies, code).add(all);
                continue;
            }
            for (code, row) in codes.zip(rows) {
                at(tallies, code).count(row.status, row.bytes_sent);
            }
        }
    }

    /// Counts the values of a request that have no code.
    #[cold]
    pub(super) fn count_others<'a>(&mut self, row: &Row, value: impl Fn(usize) -> &'a [u8]) {
        for (text, &code) in row.codes.iter().enumerate() {
            if code == OTHER {
                self.overflows[text]
                    .get_or_insert_with(|| Box::new(Overflow::new()))
                    .count(value(text), row.status, row.bytes_sent);
            }
        }
    }

    /// Returns how many bytes of heap the counters hold, within a few KiB.
    pub(super) fn memory_bytes(&self) -> usize {
        let by_code = self.by_code.iter();
        let overflows = self.overflows.iter().flatten();
        by_code
            .map(|tallies| tallies.capacity() * size_of::<Tally>())
            .chain(overflows.map(|overflow| overflow.memory_bytes()))
            .sum::<usize>()
            + self.peaks.memory_bytes()
            + self.timeline.memory_bytes()
            + self.durations.memory_bytes()
    }
}

/// Returns the code if all codes are equal.
#[inline]
fn only(mut codes: impl Iterator<Item = u32>) -> Option<u32> {
    let first = codes.next()?;
    codes.all(|code| code == first).then_some(first)
}
