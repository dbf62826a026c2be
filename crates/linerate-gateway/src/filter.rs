//! Filters of subscribers: expressions over the JSON payload of publications.
//!
//! The language is that of `linerate_filter`, a strict subset of CEL. No payload can make a
//! subscription fail: a publication that is not JSON, or lacks a field that the expression uses,
//! does not match.

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use linerate_filter::{Limits, ParseError};
use linerate_hub::Filter;

use parking_lot::Mutex;

use crate::config::FilterOptions;

/// The text is not a valid filter, or exceeds a limit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid filter, {0}")]
pub(crate) struct FilterError(ParseError);

/// The smallest number of entries at which those of unused filters are removed.
const SWEPT_MIN: usize = 64;

/// Compiles filters. Subscribers with the same expression share one, which the hub then evaluates
/// once for all of them.
#[derive(Debug)]
pub(crate) struct Filters {
    options: FilterOptions,
    shared: Mutex<Shared>,
}

/// Compiled filters by their text, as long as they are in use.
#[derive(Debug, Default)]
struct Shared {
    filters: HashMap<String, Weak<dyn Filter>, foldhash::fast::RandomState>,
    /// The number of filters that were in use when the entries of others were last removed.
    used: usize,
}

impl Filters {
    /// Compiles filters within these limits.
    pub(crate) fn new(options: FilterOptions) -> Self {
        Self {
            options,
            shared: Mutex::default(),
        }
    }

    /// Returns the filter for an expression.
    ///
    /// # Errors
    /// Fails if the text is not a valid expression, or exceeds a limit.
    pub(crate) fn compile(&self, text: &str) -> Result<Arc<dyn Filter>, FilterError> {
        let text = text.trim();
        let limits = Limits::new(self.options.expression_bytes_max, self.options.nodes_max);
        let mut shared = self.shared.lock();
        if let Some(known) = shared.filters.get(text).and_then(Weak::upgrade) {
            return Ok(known);
        }
        // Compiling takes microseconds, so that other workers can wait for the lock.
        let compiled = linerate_filter::Filter::new(text, &limits).map_err(FilterError)?;
        let compiled: Arc<dyn Filter> = Arc::new(Arc::new(compiled));
        shared.tidy(self.options.cache_max);
        if shared.filters.len() < self.options.cache_max {
            let weak = Arc::downgrade(&compiled);
            shared.filters.insert(text.to_owned(), weak);
        }
        Ok(compiled)
    }
}

impl Shared {
    /// Removes the entries of unused filters, if they may be most of them.
    fn tidy(&mut self, filters_max: usize) {
        if self.filters.len() < SWEPT_MIN.max(2 * self.used).min(filters_max) {
            return;
        }
        self.filters.retain(|_, filter| filter.strong_count() > 0);
        self.used = self.filters.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn unused_filters_are_not_kept() {
        let filters = Filters::new(Config::default().filter);
        let compile = |number| filters.compile(&format!("a == {number}")).unwrap();
        let used: Vec<_> = (0..100).map(compile).collect();
        for number in 100..10_000 {
            drop(compile(number));
            assert!(filters.shared.lock().filters.len() <= 2 * used.len());
        }
        let is_same = |(number, filter)| Arc::ptr_eq(&compile(number), filter);
        assert!((0..).zip(&used).all(is_same));
    }

    #[test]
    fn the_same_text_is_the_same_filter_and_their_number_is_bounded() {
        let filters = Filters::new(FilterOptions {
            cache_max: 2,
            ..Config::default().filter
        });
        let first = filters.compile("a == 1").unwrap();
        assert!(Arc::ptr_eq(&first, &filters.compile(" a == 1\n").unwrap()));
        for number in 0..10 {
            drop(filters.compile(&format!("b == {number}")).unwrap());
        }
        assert!(filters.shared.lock().filters.len() <= 2);
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
