//! The values of a field in some order, and how long requests took over time.

use serde::Serialize;

/// The values of a field in the order of a [`ListQuery`](crate::query::ListQuery).
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueList {
    /// The name of the field, as in filters.
    pub field: &'static str,
    /// The requests of all values.
    pub requests: u64,
    /// The number of values.
    pub distinct: u64,
    /// The requests with a value that is not tracked. It is not listed.
    pub not_counted: u64,
    /// The values. Those with equal figures are in byte order.
    pub values: Vec<ListedValue>,
    /// The relative error of the percentiles.
    pub error: f64,
}

/// A value and its requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ListedValue {
    /// The value; empty for requests without one. Very long values are truncated, and bytes that
    /// are not UTF-8 are replaced.
    pub value: String,
    /// The number of requests.
    pub requests: u64,
    /// Their total response bytes, capped at 2^64 - 1.
    pub bytes: u64,
    /// The requests with a status of 400 to 599.
    pub errors: u64,
    /// How long they took; `None` if the log does not say.
    pub latency: Option<ValueLatency>,
}

/// How long the requests of a value took, in microseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ValueLatency {
    /// The number of requests that have a duration.
    pub count: u64,
    /// Their mean duration, exact.
    pub mean_us: u64,
    /// The median.
    pub p50_us: u64,
    /// 90 % of the requests took at most this long.
    pub p90_us: u64,
    /// 99 % of the requests took at most this long.
    pub p99_us: u64,
    /// 99.9 % of the requests took at most this long.
    pub p999_us: u64,
    /// The longest duration, exact.
    pub max_us: u64,
}

/// How long requests took over time. All lists have the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencySeries {
    /// When the first bucket begins, in seconds since 1970-01-01 UTC. `None` without requests.
    pub start: Option<i64>,
    /// The length of a bucket in seconds.
    pub bucket_seconds: u64,
    /// The requests of each bucket that have a duration.
    pub counts: Vec<u64>,
    /// The median of each bucket in microseconds; `None` without durations.
    pub p50_us: Vec<Option<u64>>,
    /// 90 % of the requests of a bucket took at most this long.
    pub p90_us: Vec<Option<u64>>,
    /// 99 % of the requests of a bucket took at most this long.
    pub p99_us: Vec<Option<u64>>,
    /// 99.9 % of the requests of a bucket took at most this long.
    pub p999_us: Vec<Option<u64>>,
    /// The relative error of the percentiles.
    pub error: f64,
}
