//! Decides whether a file is an access log at all.

use super::{SessionError, VERDICT_BYTES};
use crate::aggregate::Aggregator;

/// The number of lines from which on the share of requests is meaningful.
const LINES_MIN: u64 = 1_000;

/// Judges each file once: after its first MiB, or at its end if that comes sooner.
///
/// A file is rejected if it has bytes but no request at all, or if fewer than 1 % of 1,000 or more
/// lines are requests. It is never rejected later: figures with many unparsed lines are worth more
/// than an error.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    passed: bool,
    /// The decompressed bytes of the files before this one.
    bytes_before: u64,
    /// The requests of the files before this one.
    requests_before: u64,
    /// The lines of the files before this one.
    lines_before: u64,
}

impl Verdict {
    /// Creates the verdict on the file that follows what `log` has counted so far.
    pub(super) fn of_next_file(log: &Aggregator) -> Self {
        Self {
            bytes_before: log.bytes_read(),
            requests_before: log.requests(),
            lines_before: log.lines(),
            ..Self::default()
        }
    }

    /// Judges the file once enough bytes were parsed.
    pub(super) fn after_input(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes(log) < VERDICT_BYTES {
            return Ok(());
        }
        self.judge(log)
    }

    /// Judges the file at its end, unless it already passed.
    pub(super) fn at_eof(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes(log) == 0 {
            return Ok(());
        }
        self.judge(log)
    }

    fn judge(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        let requests = log.requests() - self.requests_before;
        let lines = log.lines() - self.lines_before;
        if requests > 0 && (lines < LINES_MIN || requests >= lines.div_ceil(100)) {
            self.passed = true;
            return Ok(());
        }
        Err(SessionError::NotALog { requests, lines })
    }

    /// Returns how many decompressed bytes of this file were parsed.
    fn bytes(&self, log: &Aggregator) -> u64 {
        log.bytes_read() - self.bytes_before
    }
}
