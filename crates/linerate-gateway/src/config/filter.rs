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
    /// Values of a publication that it looks at; what has more is no match.
    pub values_max: usize,
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
        check.range("nodes_max", self.nodes_max, 1..=1_000);
        check.range("values_max", self.values_max, 1..=100_000);
        check.range("cache_max", self.cache_max, 1..=1_000_000);
    }
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self {
            expression_bytes_max: 1_024,
            nodes_max: 64,
            values_max: 1_000,
            cache_max: 10_000,
        }
    }
}
