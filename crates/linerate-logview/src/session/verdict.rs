//! Whether a file is an access log at all.

use super::{SessionError, VERDICT_BYTES};
use crate::aggregate::Aggregator;

/// How many lines it takes for the share of requests to mean something.
const LINES_MIN: u64 = 1_000;

/// Judges a file once: after its first MiB, or at its end if that comes sooner.
///
/// It is refused if it has bytes but not one request, or if fewer than 1 % of 1,000 or more lines
/// are requests. Later on nothing is refused any more: figures with many unparsed lines are worth
/// more than an error.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    passed: bool,
    /// The bytes of the files before, decompressed.
    bytes_before: u64,
    /// The requests of the files before.
    requests_before: u64,
    /// Their lines.
    lines_before: u64,
}

impl Verdict {
    /// Creates the verdict on the file that follows after what `log` has counted.
    pub(super) fn of_next_file(log: &Aggregator) -> Self {
        Self {
            bytes_before: log.bytes_read(),
            requests_before: log.requests(),
            lines_before: log.lines(),
            ..Self::default()
        }
    }

    /// Judges once enough bytes were parsed.
    pub(super) fn after_input(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes(log) < VERDICT_BYTES {
            return Ok(());
        }
        self.judge(log)
    }

    /// Judges at the end of the file, unless that was done before.
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

    /// Returns how many bytes of this file came, decompressed.
    fn bytes(&self, log: &Aggregator) -> u64 {
        log.bytes_read() - self.bytes_before
    }
}
