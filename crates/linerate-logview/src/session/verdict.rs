//! Whether a file is an access log at all.

use super::{SessionError, VERDICT_BYTES};
use crate::aggregate::Aggregator;

/// How many lines it takes for the share of requests to mean something.
const LINES_MIN: u64 = 1_000;

/// Files that begin so are compressed. A log line can't: these are control bytes or not ASCII.
const COMPRESSED: [(&[u8], &str); 4] = [
    (b"\x1F\x8B", "gzip"),
    (b"\x28\xB5\x2F\xFD", "zstd"),
    (b"\xFD7zXZ\0", "xz"),
    (b"BZh91AY&SY", "bzip2"),
];
/// The length of the longest of those beginnings.
const HEAD_LEN: usize = 10;

/// Judges a file once: after its first MiB, or at its end if that comes sooner.
///
/// It is refused if it has bytes but not one request, or if fewer than 1 % of 1,000 or more lines
/// are requests. Later on nothing is refused any more: figures with many unparsed lines are worth
/// more than an error.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// The file's first bytes.
    head: Vec<u8>,
    passed: bool,
    /// The bytes of this file that came.
    bytes: u64,
    /// The requests of the files before.
    requests_before: u64,
    /// Their lines.
    lines_before: u64,
}

impl Verdict {
    /// Creates the verdict on the file that follows after what `log` has counted.
    pub(super) fn of_next_file(log: &Aggregator) -> Self {
        Self {
            requests_before: log.requests(),
            lines_before: log.lines(),
            ..Self::default()
        }
    }

    /// Counts bytes of the file, and keeps the first ones.
    pub(super) fn note(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let missing = HEAD_LEN - self.head.len();
        self.head
            .extend_from_slice(&bytes[..bytes.len().min(missing)]);
    }

    /// Judges once enough bytes were parsed.
    pub(super) fn after_input(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes < VERDICT_BYTES {
            return Ok(());
        }
        self.judge(log)
    }

    /// Judges at the end of the file, unless that was done before.
    pub(super) fn at_eof(&mut self, log: &Aggregator) -> Result<(), SessionError> {
        if self.passed || self.bytes == 0 {
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
        let compressed = COMPRESSED
            .iter()
            .find(|(magic, _)| self.head.starts_with(magic));
        Err(match compressed {
            Some((_, by)) => SessionError::Compressed(by),
            None => SessionError::NotALog { requests, lines },
        })
    }
}
