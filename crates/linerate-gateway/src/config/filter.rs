//! `[filter]`: limits on the size and number of filters.

use serde::Deserialize;

use super::check::Check;

/// Limits on the size and number of filters.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FilterOptions {
    /// Maximum length of an expression, in bytes.
    pub expression_bytes_max: usize,
    /// Maximum number of operators, functions, constants and fields in an expression; a list of
    /// constants counts as one.
    pub nodes_max: usize,
    /// Maximum number of compiled expressions that subscribers with the same expression share.
    pub cache_max: usize,
    /// Maximum number of distinct filters of a channel, on each worker.
    pub channel_filters_max: usize,
    /// Maximum number of searches through the values of a publication by all filters of a channel,
    /// on each worker.
    pub channel_searches_max: usize,
    /// Maximum number of distinct filters of a client.
    pub client_filters_max: usize,
}

impl FilterOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range(
            "expression_bytes_max",
            self.expression_bytes_max,
            1..=16 << 10,
        );
        check.range("nodes_max", self.nodes_max, 1..=1_000);
        check.range("channel_filters_max", self.channel_filters_max, 1..=100_000);
        check.range(
            "channel_searches_max",
            self.channel_searches_max,
            0..=100_000,
        );
        check.range("client_filters_max", self.client_filters_max, 1..=100_000);
        check.range("cache_max", self.cache_max, 1..=1_000_000);
    }
}
