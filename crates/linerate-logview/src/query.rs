//! Queries of a log: a time range, and filters in the language of `docs/gateway/filters.md`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

mod changes;
pub(crate) mod condition;
mod constants;
pub(crate) mod encoding;
mod error;
mod field;
mod list;
pub(crate) mod ranges;
mod rate;
mod rows;
pub(crate) mod values;

pub use changes::{ChangesQuery, Period};
pub use error::{FilterError, FilterProblem, QueryError};
pub use field::Field;
pub use list::{LISTED_MAX, ListQuery, SortKey};
pub use rate::{
    RATE_REQUESTS_MAX, RATE_SECONDS_MAX, RateKey, RateLimit, RateLimitError, RateQuery, RuleFormat,
};
pub use rows::{LogLine, Rows, RowsQuery};

use condition::Condition;

/// The number of values in each list of a summary unless a query asks for another number.
pub const TOP_DEFAULT: usize = 20;
/// The most values that a query may ask for in each list: as many as a page can reasonably show.
pub const TOP_MAX: usize = 1_000;

/// Selects requests by time and by filter expressions, all of which must be true for a request.
///
/// The expressions are those of [`linerate_filter`], with the fields of [`Field`]. Each has the
/// same meaning as for a publication that is an object with these fields.
///
/// ```
/// use linerate_logview::query::{Field, Query};
///
/// let query: Query = serde_json::from_str(
///     r#"{"from":1611280020,"filters":["status >= 500","path.startsWith(\"/api/\")"]}"#,
/// )?;
/// assert_eq!(query.fields()?, [Field::Path, Field::Status].into());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Query {
    /// The first moment that is selected, in seconds since 1970-01-01 UTC; `None` selects from the
    /// beginning.
    pub from: Option<i64>,
    /// The first moment that is no longer selected, likewise; `None` selects up to the end.
    pub until: Option<i64>,
    /// The expressions that must be true for a request.
    pub filters: Vec<String>,
    /// The most values in each list, up to [`TOP_MAX`]. Defaults to [`TOP_DEFAULT`].
    pub top_max: usize,
}

impl Query {
    /// Checks the query as far as possible without a log, and returns the fields that its filters
    /// name.
    ///
    /// # Errors
    /// Returns an error if the query exceeds a limit, or if a filter is not an expression, names an
    /// unknown field, or compares a field with a value of another type.
    pub fn fields(&self) -> Result<BTreeSet<Field>, QueryError> {
        let mut fields = BTreeSet::new();
        self.condition()?.name(&mut fields);
        Ok(fields)
    }

    /// Returns the condition that combines all filters.
    pub(crate) fn condition(&self) -> Result<Condition, QueryError> {
        if self.top_max > TOP_MAX {
            return Err(QueryError::TopTooLong {
                top: self.top_max,
                top_max: TOP_MAX,
            });
        }
        condition::of_filters(&self.filters)
    }
}

impl Default for Query {
    fn default() -> Self {
        Self {
            from: None,
            until: None,
            filters: Vec::new(),
            top_max: TOP_DEFAULT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Query, TOP_DEFAULT};

    #[test]
    fn queries_are_parsed_with_defaults_and_serialized_back() {
        let query: Query = serde_json::from_str("{}").unwrap();
        assert_eq!(query, Query::default());
        assert_eq!(query.top_max, TOP_DEFAULT);
        let query = Query {
            from: Some(-1),
            until: Some(60),
            filters: vec!["status >= 500".into()],
            top_max: 7,
        };
        let json = serde_json::to_value(&query).unwrap();
        assert_eq!(json["filters"][0], "status >= 500");
        assert_eq!(serde_json::from_value::<Query>(json).unwrap(), query);
    }

    #[test]
    fn a_query_in_the_former_language_is_refused() {
        let former = r#"{"conditions":[{"dimension":"path","value":"/a*"}]}"#;
        let error = serde_json::from_str::<Query>(former).unwrap_err();
        assert!(error.to_string().contains("`conditions`"), "{error}");
    }
}
