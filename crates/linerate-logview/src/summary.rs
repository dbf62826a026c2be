//! The figures of a log, as printed by `linerate logs FILE --json` and drawn by the log page.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::decode::DecodeError;
use crate::format::FormatFit;

mod changes;
mod panels;
mod rates;
mod values;

pub use changes::{Change, Changes, PeriodTotals};
pub use panels::{
    Bots, ErrorPaths, Filterable, Firewall, Latency, Panel, Panels, Ranked, RowsKept, Suspect,
};
pub use rates::{RateEffect, RateLimited, Rates};
pub use values::{LatencySeries, ListedValue, ValueLatency, ValueList};

/// The figures of a log, or of the part that has arrived.
///
/// `requests + unparsed + blank = lines`, and every map of counts adds up to the requests that it
/// covers, so nothing is missing silently.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The number of lines.
    pub lines: u64,
    /// The number of lines that are requests in the format of the log.
    pub requests: u64,
    /// The number of lines that are neither requests nor blank.
    pub unparsed: u64,
    /// The number of lines that are empty except for their line ending. They do not indicate a
    /// problem, so they do not count as unparsed.
    pub blank: u64,
    /// The unparsed lines by the name of their reason.
    pub unparsed_reasons: BTreeMap<&'static str, u64>,
    /// The first unparsed lines.
    pub unparsed_samples: Vec<UnparsedSample>,
    /// The size of the log itself in bytes.
    pub bytes_read: u64,
    /// The files that are damaged, of which only the lines before the damage were counted.
    pub damaged: Vec<Damage>,
    /// The total response bytes of the requests, capped at 2^64 - 1.
    pub bytes_sent: u64,
    /// The number of distinct client addresses; an estimate unless `unique_addresses_exact`.
    pub unique_addresses: u64,
    /// True if `unique_addresses` is exact.
    pub unique_addresses_exact: bool,
    /// The number of distinct paths without their query strings; an estimate unless `paths_exact`.
    pub unique_paths: u64,
    /// True if `unique_paths` is exact.
    pub paths_exact: bool,
    /// The requests for paths that appeared after the limit on distinct paths was reached.
    pub paths_not_counted: u64,
    /// The requests whose request line is invalid: empty, truncated or binary.
    pub requests_without_path: u64,
    /// The requests by three-digit status.
    pub statuses: BTreeMap<String, u64>,
    /// The requests by class of status: `1xx` to `5xx`, and `other`.
    pub status_classes: BTreeMap<&'static str, u64>,
    /// The requests by method, except those without a request line. `(other)` is the sum of the
    /// methods beyond the limit on distinct methods.
    pub methods: BTreeMap<String, u64>,
    /// The most frequent paths with their requests, in descending order; paths with equal counts
    /// are in byte order. Very long paths are truncated, and bytes that are not UTF-8 are replaced.
    pub top_paths: Vec<(String, u64)>,
    /// The time of the earliest request, in seconds since 1970-01-01 UTC.
    pub first_time: Option<i64>,
    /// The time of the latest request, likewise.
    pub last_time: Option<i64>,
    /// The requests over time.
    pub timeline: Timeline,
    /// The name of the log's format; empty until it is known.
    pub format: String,
    /// How well the format fits the first lines, if it was detected.
    pub format_fit: Option<FormatFit>,
    /// True if any figure is an estimate. The panels show which ones are.
    pub approximate: bool,
    /// The most frequent values of each dimension.
    pub panels: Panels,
    /// The requests of programs that identify themselves.
    pub bots: Bots,
    /// The browsers, without their versions. Programs have none.
    pub browsers: Panel,
    /// The operating systems of the browsers.
    pub systems: Panel,
    /// The English names of countries by ISO code; `None` if no country database was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_names: Option<BTreeMap<String, String>>,
    /// How long requests took; `None` if the log does not record it.
    pub latency: Option<Latency>,
    /// The paths with the most errors.
    pub error_paths: ErrorPaths,
    /// The addresses that a firewall's rules would notice.
    pub firewall: Firewall,
    /// What is kept for queries.
    pub filterable: Filterable,
    /// What is kept of the lines themselves.
    pub rows_kept: RowsKept,
}

/// A compressed file that could not be read to its end.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Damage {
    /// The name of the file.
    pub file: String,
    /// `truncated` if the file ends early, `corrupt` if its content is wrong.
    pub reason: &'static str,
    /// How many bytes of the file were read before the damage was found.
    pub bytes: u64,
    /// How many of its lines were counted.
    pub lines: u64,
}

impl Damage {
    /// Describes the error of a file of which `bytes` bytes and `lines` lines were read. Returns
    /// `None` if the file was refused for another reason than damage.
    pub fn new(file: String, error: &DecodeError, bytes: u64, lines: u64) -> Option<Self> {
        let (reason, bytes) = match error {
            DecodeError::Corrupt { at } => ("corrupt", *at),
            DecodeError::Truncated => ("truncated", bytes),
            _ => return None,
        };
        Some(Self {
            file,
            reason,
            bytes,
            lines,
        })
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.file.capacity()
    }
}

/// A line that could not be parsed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UnparsedSample {
    /// The line number, from 1.
    pub line: u64,
    /// The name of the [`Reason`](crate::format::Reason).
    pub reason: &'static str,
    /// The first characters of the line; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The requests over time, stacked by class of status.
///
/// In the figures of a query, it covers the period of the query, or the whole log if the query has
/// none, with zeros where no request is selected.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// When the first bucket begins, in seconds since 1970-01-01 UTC: a multiple of
    /// `bucket_seconds`. `None` while there are no requests.
    pub start: Option<i64>,
    /// The length of a bucket: 1, 5, 15 or 60 × 2^n seconds. It grows with the span of the log.
    pub bucket_seconds: u64,
    /// The requests per bucket for each class of status. All lists have the same length.
    pub classes: BTreeMap<&'static str, Vec<u64>>,
    /// The response bytes per bucket, each capped at 2^64 - 1.
    pub bytes: Vec<u64>,
    /// The requests per bucket for each method. `(other)` is the sum of the methods beyond the
    /// limit on distinct methods.
    pub by_method: BTreeMap<String, Vec<u64>>,
    /// The requests per bucket for each of the most frequent hosts, and `(other)`.
    pub by_host: BTreeMap<String, Vec<u64>>,
    /// The requests that the lists leave out: the few whose times are so far from all others that
    /// the time between them would take a third of the axis, and those that are decades apart.
    pub outside: u64,
}
