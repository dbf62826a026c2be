//! Filters of subscribers: expressions over the JSON payload of publications.
//!
//! The language is that of `linerate_filter`, a strict subset of CEL. No payload can make a
//! subscription fail: a publication that is not JSON, or lacks a field that the expression uses,
//! does not match.

use std::sync::Arc;

use hashbrown::HashMap;
use linerate_filter::{Limits, ParseError};
use linerate_hub::Filter;

use parking_lot::Mutex;

use crate::config::FilterOptions;

/// The text is not a valid filter, or exceeds a limit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid filter, {0}")]
pub(crate) struct FilterError(ParseError);

/// Compiles filters and caches them by their text.
#[derive(Debug)]
pub(crate) struct Filters {
    options: FilterOptions,
    compiled: Mutex<HashMap<String, Arc<dyn Filter>, foldhash::fast::RandomState>>,
}

impl Filters {
    /// Creates an empty cache that compiles within these limits.
    pub(crate) fn new(options: FilterOptions) -> Self {
        Self {
            options,
            compiled: Mutex::default(),
        }
    }

    /// Returns the filter for an expression.
    ///
    /// # Errors
    /// Fails if the text is not a valid expression, or exceeds a limit.
    pub(crate) fn compile(&self, text: &str) -> Result<Arc<dyn Filter>, FilterError> {
        let text = text.trim();
        let limits = Limits::new(self.options.expression_bytes_max, self.options.nodes_max);
        let mut all = self.compiled.lock();
        if let Some(known) = all.get(text) {
            return Ok(known.clone());
        }
        // Compiling takes microseconds, so that other workers can wait for the lock.
        let compiled = linerate_filter::Filter::new(text, &limits).map_err(FilterError)?;
        let compiled: Arc<dyn Filter> = Arc::new(Arc::new(compiled));
        if all.len() >= self.options.cache_max {
            all.retain(|_, filter| Arc::strong_count(filter) > 1);
        }
        if all.len() < self.options.cache_max {
            all.insert(text.to_owned(), compiled.clone());
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_same_text_is_the_same_filter_and_the_cache_is_bounded() {
        let filters = Filters::new(FilterOptions {
            cache_max: 2,
            ..Config::default().filter
        });
        let first = filters.compile("a == 1").unwrap();
        assert!(Arc::ptr_eq(&first, &filters.compile(" a == 1\n").unwrap()));
        for number in 0..10 {
            drop(filters.compile(&format!("b == {number}")).unwrap());
        }
        assert!(filters.compiled.lock().len() <= 2);
        let again = filters.compile("a == 1").unwrap();
        assert!(Arc::ptr_eq(&first, &again), "one that is in use stays");
    }

    #[test]
    fn an_error_has_the_place_and_the_limits_are_those_of_the_configuration() {
        let filters = Filters::new(FilterOptions {
            expression_bytes_max: 10,
            nodes_max: 5,
            ..Config::default().filter
        });
        let refusal = |text| filters.compile(text).unwrap_err().to_string();
        assert_eq!(
            refusal("a = 1"),
            "invalid filter, column 3: found =, expected =="
        );
        assert!(filters.compile("a == 10000").is_ok());
        let message = refusal("a == 100000");
        assert!(message.contains("11 bytes; at most 10"), "{message}");
        let message = refusal("a||b||c||d");
        assert!(message.contains("more than 5 nodes"), "{message}");
    }
}
