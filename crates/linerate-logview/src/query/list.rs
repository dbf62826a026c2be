//! The question which values of a field have the most requests, bytes, errors or time.

use serde::{Deserialize, Serialize};

use super::{Field, Query, QueryError, TOP_DEFAULT, changes::top_default};

/// The most values of an answer: percentiles take 30 KiB of memory for each.
pub const LISTED_MAX: usize = 200;

/// Asks for the values of a field in some order.
///
/// ```
/// use linerate_logview::query::{ListQuery, SortKey};
///
/// let query: ListQuery = serde_json::from_str(r#"{"field":"path","by":"mean"}"#)?;
/// assert_eq!((query.by, query.ascending), (SortKey::Mean, false));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// The name of the field: one of [`Field::LISTED`].
    pub field: String,
    /// The figure by which all values are sorted.
    #[serde(default)]
    pub by: SortKey,
    /// True if the lowest figure comes first.
    #[serde(default)]
    pub ascending: bool,
    /// The first moment that is selected, as in a [`Query`].
    #[serde(default)]
    pub from: Option<i64>,
    /// The first moment after the selected ones, likewise.
    #[serde(default)]
    pub until: Option<i64>,
    /// The expressions that must be true for a request, likewise.
    #[serde(default)]
    pub filters: Vec<String>,
    /// The most values in the answer, up to [`LISTED_MAX`]. Defaults to [`TOP_DEFAULT`].
    #[serde(default = "top_default")]
    pub top_max: usize,
}

/// The figure by which values are sorted.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SortKey {
    /// The response bytes.
    Bytes,
    /// The requests with a status of 400 to 599.
    Errors,
    /// The mean duration of the requests that have one.
    Mean,
    /// The number of requests.
    #[default]
    Requests,
    /// The longest duration.
    Slowest,
}

impl ListQuery {
    /// Lists the values of a field that have the most requests.
    pub fn new(field: Field) -> Self {
        Self {
            field: field.name().to_owned(),
            by: SortKey::default(),
            ascending: false,
            from: None,
            until: None,
            filters: Vec::new(),
            top_max: TOP_DEFAULT,
        }
    }

    /// Returns the field.
    ///
    /// # Errors
    /// The field is unknown or cannot be listed, or the answer would exceed [`LISTED_MAX`].
    pub(crate) fn checked_field(&self) -> Result<Field, QueryError> {
        if self.top_max > LISTED_MAX {
            return Err(QueryError::TopTooLong {
                top: self.top_max,
                top_max: LISTED_MAX,
            });
        }
        let field = Field::find(&self.field).filter(|field| Field::LISTED.contains(field));
        field.ok_or(QueryError::NotListed)
    }

    /// Returns the query that selects the requests.
    pub(crate) fn selection(&self) -> Query {
        Query {
            from: self.from,
            until: self.until,
            filters: self.filters.clone(),
            top_max: self.top_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LISTED_MAX, ListQuery};
    use crate::query::{Field, QueryError};

    #[test]
    fn lists_up_to_the_limit_are_accepted_and_longer_ones_refused() {
        let query = |top_max| ListQuery {
            top_max,
            ..ListQuery::new(Field::Path)
        };
        assert_eq!(query(LISTED_MAX).checked_field(), Ok(Field::Path));
        let error = QueryError::TopTooLong {
            top: 201,
            top_max: 200,
        };
        assert_eq!(query(LISTED_MAX + 1).checked_field(), Err(error));
    }

    #[test]
    fn fields_that_are_numbers_or_unknown_are_refused() {
        for name in ["time", "bytes_sent", "status_class", "city", ""] {
            let query = ListQuery {
                field: name.to_owned(),
                ..ListQuery::new(Field::Path)
            };
            assert_eq!(query.checked_field(), Err(QueryError::NotListed), "{name}");
        }
    }
}
