//! Filters of subscribers: expressions in CEL over the JSON of publications.
//!
//! The fields of an object are variables (`level == "error" && bytes > 1000`), and `data` is the whole of it. A
//! publication is seen if the expression is true. If a field is missing, has another type, or the payload is
//! no JSON, it is not: what is published can't make a subscriber fail.
//!
//! What an expression may do is limited before it runs (`check`), so that evaluating it takes time in
//! proportion to its nodes and the publication.

mod check;
mod convert;
mod error;
mod expression;
mod guard;
mod parse;

use std::sync::{Arc, Mutex, PoisonError};

use hashbrown::HashMap;
use linerate_hub::Filter;

use crate::config::FilterOptions;

pub use error::FilterError;
use expression::Expression;
pub(crate) use parse::DEPTH_MAX;

/// Compiles filters, and hands out the same one for the same text.
#[derive(Debug)]
pub struct Filters {
    options: FilterOptions,
    compiled: Mutex<HashMap<String, Arc<Expression>, foldhash::fast::RandomState>>,
}

impl Filters {
    /// Compiles within these limits.
    pub fn new(options: FilterOptions) -> Self {
        Self {
            options,
            compiled: Mutex::default(),
        }
    }

    /// Returns the filter for an expression.
    ///
    /// # Errors
    /// It is none, or may cost more than allowed. The error names the limit.
    pub fn compile(&self, text: &str) -> Result<Arc<dyn Filter>, FilterError> {
        let text = text.trim();
        if let Some(known) = self.find(text) {
            return Ok(known);
        }
        // Nobody else waits meanwhile; if two compile the same, the later one stays.
        let compiled = Arc::new(Expression::compile(text, &self.options)?);
        let mut all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= self.options.cache_max {
            all.retain(|_, filter| Arc::strong_count(filter) > 1);
        }
        if all.len() < self.options.cache_max {
            all.insert(text.to_owned(), compiled.clone());
        }
        Ok(compiled)
    }

    fn find(&self, text: &str) -> Option<Arc<Expression>> {
        let all = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(text).cloned()
    }
}

#[cfg(test)]
mod tests;
