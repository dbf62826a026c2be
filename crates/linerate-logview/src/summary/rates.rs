//! Which clients exceed a limit of requests.

use serde::Serialize;

use crate::query::{RateKey, RateLimit};

/// The clients that exceed a limit of requests, and the effect of other limits.
///
/// A request is over the limit if more than [`RateLimit::requests`] requests of the same key, with
/// itself, were logged in the [`RateLimit::seconds`] clock seconds that end with its own. Requests
/// that are over the limit count as well, so that a client that continues stays limited.
/// The order of the log does not matter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// The limit.
    pub limit: RateLimit,
    /// What the requests were counted by.
    pub by: RateKey,
    /// The selected requests that have a key.
    pub requests: u64,
    /// The selected requests without a key: those without an agent, from unknown networks, or of
    /// values that are not tracked because the log has too many. No limit applies to them.
    pub without_key: u64,
    /// The number of keys.
    pub keys: u64,
    /// How many of them look like people: see [`RateLimited::looks_like_people`].
    pub people: u64,
    /// The effect of the limit.
    pub effect: RateEffect,
    /// The keys with the most requests over the limit, in descending order.
    pub limited: Vec<RateLimited>,
    /// The effect of limits of other numbers of requests in the same time, in ascending order. It
    /// ends with the first one that no key exceeds.
    pub curve: Vec<RateEffect>,
    /// Times are multiples of this many seconds. Above 1, as in reports of large logs, counts are
    /// approximate.
    pub time_step_s: u32,
    /// The rules, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rules: Option<String>,
}

/// The effect of a limit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RateEffect {
    /// The most requests that the limit allows.
    pub allowed: u64,
    /// The keys that exceed it.
    pub keys: u64,
    /// All their requests.
    pub requests: u64,
    /// Their requests over the limit.
    pub over: u64,
    /// How many of the keys look like people.
    pub people: u64,
    /// The requests over the limit of those.
    pub people_over: u64,
}

/// A key that exceeds the limit.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[non_exhaustive]
pub struct RateLimited {
    /// The address, the network, the agent, or the autonomous system as `AS64496`. Very long agents
    /// are truncated, and bytes that are not UTF-8 are replaced.
    pub value: String,
    /// The name of the autonomous system; empty for other keys.
    pub name: String,
    /// Its requests.
    pub requests: u64,
    /// Its requests over the limit.
    pub over: u64,
    /// How often it exceeded the limit: the number of requests over the limit whose predecessor was
    /// not.
    pub times: u64,
    /// The time of its first request over the limit, in seconds since 1970-01-01 UTC.
    pub first: i64,
    /// The time of its last request over the limit, likewise.
    pub last: i64,
    /// The most requests in a window.
    pub peak: u64,
    /// The last second of that window, likewise.
    pub peak_at: i64,
    /// Its requests with a status of 400 to 599.
    pub errors: u64,
    /// Its requests whose agents are not browsers.
    pub programs: u64,
    /// True if it fetched at least one page and one asset successfully, at most a tenth of its
    /// requests failed, and at most a tenth has an agent that is not a browser.
    pub looks_like_people: bool,
}
