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
    /// Countries by their ISO codes, whose names are in
    /// [`Summary::country_names`](super::Summary::country_names); `None` if no database was given.
    /// Requests from where it does not know have no value.
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
    /// Statuses of three digits.
    pub status: Panel,
}

/// The most frequent values of one dimension.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Panel {
    /// How many distinct values there are; see `exact`.
    pub distinct: u64,
    /// Whether all values could be told apart. Otherwise `distinct` is an estimate, with a standard
    /// error of 0.8 % of what could not be; in the figures of a query it is a lower bound.
    pub exact: bool,
    /// By how many requests any value, listed or not, may have more than is counted of it. What is
    /// listed is certain. 0 if exact.
    pub error_max: u64,
    /// The requests whose value came up when no further one could be told apart.
    pub not_counted: u64,
    /// The requests that have no value.
    pub none: u64,
    /// The most frequent values, most first; equal ones in the order of their bytes.
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
    /// The value. Of a very long one there are the first characters; bytes that aren't UTF-8 are
    /// replaced.
    pub value: String,
    /// The requests.
    pub requests: u64,
    /// The sum of their response bytes, at most 2^64 - 1.
    pub bytes: u64,
    /// Those with a status of 400 to 599.
    pub errors: u64,
}

/// The requests of programs that say who they are.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Bots {
    /// The requests of all of them.
    pub requests: u64,
    /// The sum of their response bytes, at most 2^64 - 1.
    pub bytes: u64,
    /// The most active ones.
    pub top: Vec<Ranked>,
}

/// The paths with the most errors.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorPaths {
    /// By requests with a status of 400 to 499, which `requests` and `errors` then count.
    #[serde(rename = "4xx")]
    pub client: Vec<Ranked>,
    /// By requests with a status of 500 to 599, likewise.
    #[serde(rename = "5xx")]
    pub server: Vec<Ranked>,
}

/// The addresses that a firewall's rules would notice, of those that could be told apart.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Firewall {
    /// By the most requests within one minute of the clock.
    pub by_rate: Vec<Suspect>,
    /// By requests with a status of 400 to 599.
    pub by_errors: Vec<Suspect>,
}

/// An address, and what it did.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Suspect {
    /// The address.
    pub value: String,
    /// Its most requests within one minute of the clock. A line that is written more than a
    /// minute late isn't counted in its minute.
    pub peak_per_minute: u64,
    /// When that minute began, in seconds since 1970-01-01 UTC.
    pub peak_at: i64,
    /// Its requests.
    pub requests: u64,
    /// Those with a status of 400 to 599.
    pub errors: u64,
}

/// How long requests took.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Latency {
    /// The requests that have a duration.
    pub count: u64,
    /// What half of them took at most, in microseconds.
    pub p50_us: u64,
    /// What 90 % of them took at most, likewise.
    pub p90_us: u64,
    /// What 99 % of them took at most, likewise.
    pub p99_us: u64,
    /// What 99.9 % of them took at most, likewise.
    pub p999_us: u64,
    /// The longest, exactly.
    pub max_us: u64,
    /// The relative error of the percentiles.
    pub error: f64,
    /// How many took up to so many microseconds and more than those of the entry before.
    pub buckets: Vec<(u64, u64)>,
}

/// What is kept for queries.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Filterable {
    /// The requests that are kept.
    pub requests: u64,
    /// How many bytes they take up.
    pub bytes: u64,
    /// How many bytes they may take up.
    pub bytes_max: u64,
    /// Whether these are all requests.
    pub complete: bool,
    /// From when on, in seconds since 1970-01-01 UTC, requests are kept, if the oldest have made way
    /// for the newest. Queries are then answered from these; `None` if they are answered from all, or
    /// not at all.
    pub since: Option<i64>,
}

/// What is kept of the lines themselves.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RowsKept {
    /// The lines that are kept.
    pub lines: u64,
    /// How many bytes they take up.
    pub bytes: u64,
    /// How many bytes they may take up; 0 if none are to be kept.
    pub bytes_max: u64,
    /// Whether these are the lines of all requests.
    pub complete: bool,
}
