//! What of a log is to be looked at: a range of time, and filters in the language of `docs/filters.md`.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

mod condition;
mod error;
mod field;
pub(crate) mod filter;
pub(crate) mod ranges;
pub(crate) mod set;
mod values;

pub use error::{FilterError, FilterProblem, QueryError};
pub use field::Field;

use condition::Condition;

/// How many values each list of a summary has unless a query asks for more.
pub const TOP_DEFAULT: usize = 20;
/// How many values a query may ask for in each list: what a page can still show.
pub const TOP_MAX: usize = 1_000;

/// Chooses requests by time and by expressions, each of which must be true for a request.
///
/// An expression is one of [`linerate_filter`], whose fields are those of [`Field`]. It means what it does for a
/// publication that is an object with these fields.
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
    /// The first moment that is chosen, in seconds since 1970-01-01 UTC; all from the beginning
    /// if `None`.
    pub from: Option<i64>,
    /// The first moment that isn't any more, likewise; all up to the end if `None`.
    pub until: Option<i64>,
    /// What must be true for a request.
    pub filters: Vec<String>,
    /// How many values each list has, up to [`TOP_MAX`]; [`TOP_DEFAULT`] unless given.
    pub top_max: usize,
}

impl Query {
    /// Checks the query as far as that is possible without a log, and returns the fields that its filters name.
    ///
    /// # Errors
    /// The query exceeds a limit, or a filter is not an expression, names an unknown field, or compares a field with
    /// a value of another type.
    pub fn fields(&self) -> Result<BTreeSet<Field>, QueryError> {
        let mut fields = BTreeSet::new();
        self.condition()?.name(&mut fields);
        Ok(fields)
    }

    /// Returns what the filters ask of a request.
    fn condition(&self) -> Result<Condition, QueryError> {
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

/// Lines of the log that a query chose.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rows {
    /// How many lines were chosen, listed or not.
    pub total: u64,
    /// Those that were asked for, in the order of the log.
    pub rows: Vec<Row>,
}

/// A line of the log.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// Its number, from 1.
    pub line: u64,
    /// The line without its end; bytes that aren't UTF-8 are replaced.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::{Query, TOP_DEFAULT};

    #[test]
    fn queries_are_read_with_their_defaults_and_written_back() {
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
    fn a_query_of_the_former_language_is_refused_rather_than_answered_with_everything() {
        let former = r#"{"conditions":[{"dimension":"path","value":"/a*"}]}"#;
        let error = serde_json::from_str::<Query>(former).unwrap_err();
        assert!(error.to_string().contains("`conditions`"), "{error}");
    }
}
