//! The figures of a log: what `linerate logs FILE --json` prints and the log page draws.

use std::collections::BTreeMap;

use serde::Serialize;

mod panels;

pub use panels::{
    Bots, ErrorPaths, Filterable, Firewall, Latency, Panel, Panels, Ranked, RowsKept, Suspect,
};

/// The figures of a log, or of its part that has arrived.
///
/// `requests + unparsed + blank = lines`, and every map of counts sums up to the requests that it
/// is about, so that nothing is missing silently.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The lines.
    pub lines: u64,
    /// The lines that are requests in the `common` or `combined` format.
    pub requests: u64,
    /// The lines that are neither requests nor blank.
    pub unparsed: u64,
    /// The lines that are empty but for their line end. They say nothing, not even that something
    /// is wrong, so they are no unparsed lines.
    pub blank: u64,
    /// The unparsed lines by the name of their reason.
    pub unparsed_reasons: BTreeMap<&'static str, u64>,
    /// The first unparsed lines.
    pub unparsed_samples: Vec<UnparsedSample>,
    /// The bytes of the log itself.
    pub bytes_read: u64,
    /// The sum of the requests' response bytes, at most 2^64 - 1.
    pub bytes_sent: u64,
    /// The distinct client addresses; an estimate unless `unique_addresses_exact`.
    pub unique_addresses: u64,
    /// Whether all addresses could be told apart.
    pub unique_addresses_exact: bool,
    /// The distinct paths, queries cut off; an estimate unless `paths_exact`.
    pub unique_paths: u64,
    /// Whether all paths could be told apart.
    pub paths_exact: bool,
    /// The requests for a path that came up when no further path could be told apart.
    pub paths_not_counted: u64,
    /// The requests whose request line is none: empty, cut short or binary.
    pub requests_without_path: u64,
    /// The requests by status of three digits.
    pub statuses: BTreeMap<String, u64>,
    /// The requests by class of status: `1xx` to `5xx`, and `other`.
    pub status_classes: BTreeMap<&'static str, u64>,
    /// The requests by method, those without a request line excepted; `(other)` sums up what
    /// exceeds the number of methods that are told apart.
    pub methods: BTreeMap<String, u64>,
    /// The most frequent paths and their requests, most first; equal ones in the order of their
    /// bytes. Of a very long one there are the first characters; bytes that aren't UTF-8 are
    /// replaced.
    pub top_paths: Vec<(String, u64)>,
    /// The earliest request, in seconds since 1970-01-01 UTC.
    pub first_time: Option<i64>,
    /// The latest request, likewise.
    pub last_time: Option<i64>,
    /// The requests over time.
    pub timeline: Timeline,
    /// The name of the log's format; empty as long as it isn't known.
    pub format: String,
    /// Whether any figure is an estimate: see the panels for which.
    pub approximate: bool,
    /// The most frequent values.
    pub panels: Panels,
    /// The requests of programs that say who they are.
    pub bots: Bots,
    /// The English names of countries by their ISO codes; `None` if no database was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_names: Option<BTreeMap<String, String>>,
    /// How long requests took; `None` if the format doesn't say.
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

/// A line that could not be parsed.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct UnparsedSample {
    /// Its number, from 1.
    pub line: u64,
    /// Why: the name of a [`Reason`](crate::format::Reason).
    pub reason: &'static str,
    /// Its first characters; bytes that aren't UTF-8 are replaced.
    pub text: String,
}

/// The requests over time, stacked by class of status.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Timeline {
    /// When the first bucket begins, in seconds since 1970-01-01 UTC: a multiple of
    /// `bucket_seconds`. `None` as long as there is no request.
    pub start: Option<i64>,
    /// How long a bucket is: 60 × 2^n seconds, longer as the log's span grows.
    pub bucket_seconds: u64,
    /// A list of requests per bucket for each class of status, all equally long.
    pub classes: BTreeMap<&'static str, Vec<u64>>,
    /// The response bytes per bucket, at most 2^64 - 1 each.
    pub bytes: Vec<u64>,
    /// A list of requests per bucket for each method; `(other)` sums up what exceeds the number
    /// of methods that are told apart.
    pub by_method: BTreeMap<String, Vec<u64>>,
    /// A list of requests per bucket for each of the most frequent hosts, and `(other)`.
    pub by_host: BTreeMap<String, Vec<u64>>,
    /// The requests of moments too far from the others for a common picture.
    pub outside: u64,
}
