//! The parts of a summary that list values, most frequent first.

use serde::Serialize;

/// The most frequent values of each dimension.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Panels {
    /// Client addresses.
    pub address: Panel,
    /// `User-Agent` headers.
    pub agent: Panel,
    /// Countries by ISO code; their names are in
    /// [`Summary::country_names`](super::Summary::country_names). `None` if no country database was
    /// given. Requests whose country is unknown have no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<Panel>,
    /// Virtual hosts.
    pub host: Panel,
    /// Methods.
    pub method: Panel,
    /// Paths without their queries.
    pub path: Panel,
    /// `Referer` headers.
    pub referrer: Panel,
    /// Three-digit statuses.
    pub status: Panel,
}

/// The most frequent values of one dimension.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Panel {
    /// The number of distinct values; an estimate unless `exact`.
    pub distinct: u64,
    /// True if all distinct values were tracked. Otherwise `distinct` is an estimate, with a
    /// standard error of 0.8 % of the values that were not tracked; in the figures of a query it is
    /// a lower bound.
    pub exact: bool,
    /// The most requests by which the count of any value, listed or not, may be too low. The listed
    /// counts are certain. 0 if `exact`.
    pub error_max: u64,
    /// The requests whose value appeared after the limit on distinct values was reached.
    pub not_counted: u64,
    /// The requests without a value.
    pub none: u64,
    /// The most frequent values in descending order; values with equal counts are in byte order.
    pub top: Vec<Ranked>,
}

impl Default for Panel {
    fn default() -> Self {
        Self {
            distinct: 0,
            exact: true,
            error_max: 0,
            not_counted: 0,
            none: 0,
            top: Vec::new(),
        }
    }
}

/// A value and the requests that have it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Ranked {
    /// The value. Very long values are truncated, and bytes that are not UTF-8 are replaced.
    pub value: String,
    /// The number of requests.
    pub requests: u64,
    /// Their total response bytes, capped at 2^64 - 1.
    pub bytes: u64,
    /// The requests with a status of 400 to 599.
    pub errors: u64,
}

/// The requests of programs that identify themselves.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bots {
    /// The number of requests of all programs together.
    pub requests: u64,
    /// Their total response bytes, capped at 2^64 - 1.
    pub bytes: u64,
    /// The programs with the most requests.
    pub top: Vec<Ranked>,
}

/// The paths with the most errors.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorPaths {
    /// Ranked by requests with a status of 400 to 499. `requests` and `errors` both count only
    /// those.
    #[serde(rename = "4xx")]
    pub client: Vec<Ranked>,
    /// Ranked by requests with a status of 500 to 599, likewise.
    #[serde(rename = "5xx")]
    pub server: Vec<Ranked>,
}

/// The addresses that a firewall's rules would notice, among the addresses that were tracked.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Firewall {
    /// Ranked by the most requests within one clock minute.
    pub by_rate: Vec<Suspect>,
    /// Ranked by requests with a status of 400 to 599.
    pub by_errors: Vec<Suspect>,
    /// The most requests by which the busiest minute of any address, listed or not, may be too low.
    /// 0 if all are exact, as they are for any log in the order of time.
    pub error_max: u64,
}

/// An address and its behaviour.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Suspect {
    /// The address.
    pub value: String,
    /// The most requests within one clock minute, whatever the order of the lines; a lower bound if
    /// [`Firewall::error_max`] is not 0.
    pub peak_per_minute: u64,
    /// When that minute began, in seconds since 1970-01-01 UTC.
    pub peak_at: i64,
    /// The number of requests.
    pub requests: u64,
    /// The requests with a status of 400 to 599.
    pub errors: u64,
}

/// How long requests took.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// The number of requests that have a duration.
    pub count: u64,
    /// The median: half of the requests took at most this many microseconds.
    pub p50_us: u64,
    /// 90 % of the requests took at most this many microseconds.
    pub p90_us: u64,
    /// 99 % of the requests took at most this many microseconds.
    pub p99_us: u64,
    /// 99.9 % of the requests took at most this many microseconds.
    pub p999_us: u64,
    /// The longest duration in microseconds, exact.
    pub max_us: u64,
    /// The relative error of the percentiles.
    pub error: f64,
    /// A histogram. Each entry is an upper bound in microseconds and the number of requests that
    /// took at most that long but longer than the bound of the previous entry.
    pub buckets: Vec<(u64, u64)>,
}

/// What is kept for queries.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Filterable {
    /// The number of requests that are kept.
    pub requests: u64,
    /// The memory that they occupy, in bytes.
    pub bytes: u64,
    /// The most memory that they may occupy, in bytes.
    pub bytes_max: u64,
    /// True if all requests are kept.
    pub complete: bool,
    /// The time, in seconds since 1970-01-01 UTC, from which requests are kept, if the oldest were
    /// dropped to make space for the newest. Queries then cover only the kept requests. `None` if
    /// queries cover all requests, or cannot be answered at all.
    pub since: Option<i64>,
    /// Why queries cannot be answered; `None` if they can.
    pub refusal: Option<String>,
}

/// What is kept of the lines themselves.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RowsKept {
    /// The number of lines that are kept.
    pub lines: u64,
    /// The memory that they occupy, in bytes.
    pub bytes: u64,
    /// The most memory that they may occupy, in bytes; 0 if no lines are to be kept.
    pub bytes_max: u64,
    /// True if the lines of all requests are kept.
    pub complete: bool,
}
