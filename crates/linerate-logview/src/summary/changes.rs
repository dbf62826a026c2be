//! What has changed between two periods of a log.

use serde::Serialize;

/// The values that explain why two periods differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// The requests of the period that the other one is compared with.
    pub before: PeriodTotals,
    /// The requests of the other period.
    pub after: PeriodTotals,
    /// How many requests `after` has more than if the rate of `before` had continued; negative if
    /// it has fewer.
    pub difference: f64,
    /// The values whose requests grew more than all requests together did; if there are fewer
    /// requests, those whose requests fell more. The value that deviates by the most requests comes
    /// first. Deviations that chance explains are left out: up to three standard deviations, if
    /// requests are independent of each other.
    pub values: Vec<Change>,
    /// True if some requests have values that are not tracked, and are not listed.
    pub approximate: bool,
}

/// The requests of a period.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PeriodTotals {
    /// The first moment, in seconds since 1970-01-01 UTC.
    pub from: i64,
    /// The first moment after the period, likewise.
    pub until: i64,
    /// The number of requests.
    pub requests: u64,
    /// Their total response bytes, capped at 2^64 - 1.
    pub bytes: u64,
    /// The requests with a status of 400 to 599.
    pub errors: u64,
}

/// A value whose requests have changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Change {
    /// The name of the field, as in filters.
    pub field: &'static str,
    /// The value; empty for requests without one. Very long values are truncated, and bytes that
    /// are not UTF-8 are replaced.
    pub value: String,
    /// Its requests in the period `before`.
    pub before: u64,
    /// Its requests in the period `after`.
    pub after: u64,
    /// Its part of [`Changes::difference`]: 1 is all of it. Parts of different values overlap,
    /// because each request has a value in each field, and may exceed 1. `None` if there is no
    /// difference.
    pub share: Option<f64>,
}
