//! `[filter]`: what an expression that filters may cost.

use serde::Deserialize;

use super::check::Check;

/// What an expression that filters may cost.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FilterOptions {
    /// Bytes of an expression.
    pub expression_bytes_max: usize,
    /// Nodes of its syntax tree.
    pub nodes_max: usize,
    /// Bytes of a regular expression in it; 0 forbids them.
    pub regex_bytes_max: usize,
    /// Compiled expressions that are kept for the next subscriber with the same text.
    pub cache_max: usize,
}

impl FilterOptions {
    pub(super) fn check(&self, check: &mut Check) {
        check.range(
            "expression_bytes_max",
            self.expression_bytes_max,
            1..=16 << 10,
        );
        check.range("nodes_max", self.nodes_max, 1..=10_000);
        check.range("regex_bytes_max", self.regex_bytes_max, 0..=1_024);
        check.range("cache_max", self.cache_max, 1..=1_000_000);
    }
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self {
            expression_bytes_max: 1_024,
            nodes_max: 128,
            regex_bytes_max: 0,
            cache_max: 10_000,
        }
    }
}
