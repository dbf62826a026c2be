//! Lines of a log.

use serde::Serialize;

use super::{Query, QueryError};

/// The most lines that are returned at once: more than a page shows.
const ROWS_MAX: usize = 1_000;
/// The longest text that lines are searched for, in bytes.
const CONTAINING_BYTES_MAX: usize = 1_024;

/// Selects lines of the log.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RowsQuery {
    /// Selects requests. `top_max` is not used.
    pub query: Query,
    /// A text that the lines must contain, in upper or lower case; up to 1,024 bytes. Empty selects
    /// all lines.
    pub containing: String,
    /// How many of the selected lines to skip.
    pub offset: u64,
    /// The most lines to return, up to 1,000.
    pub limit: usize,
}

impl RowsQuery {
    /// Checks the limits.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.limit > ROWS_MAX {
            return Err(QueryError::TooManyRows {
                rows: self.limit,
                rows_max: ROWS_MAX,
            });
        }
        match self.containing.len() > CONTAINING_BYTES_MAX {
            true => Err(QueryError::SearchTooLong {
                bytes: self.containing.len(),
                bytes_max: CONTAINING_BYTES_MAX,
            }),
            false => Ok(()),
        }
    }
}

/// Lines of the log that a query selected.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Rows {
    /// How many lines were selected, whether or not they are in `rows`.
    pub total: u64,
    /// The requested lines, in the order of the log.
    pub rows: Vec<LogLine>,
}

/// A line of the log.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LogLine {
    /// The line number, from 1.
    pub line: u64,
    /// The line without its end; bytes that aren't UTF-8 are replaced.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::{CONTAINING_BYTES_MAX, ROWS_MAX, RowsQuery};
    use crate::query::QueryError;

    #[test]
    fn limits_are_accepted_and_one_more_is_refused() {
        let query = |limit, bytes| RowsQuery {
            limit,
            containing: "x".repeat(bytes),
            ..RowsQuery::default()
        };
        assert_eq!(query(ROWS_MAX, CONTAINING_BYTES_MAX).check(), Ok(()));
        let too_many = QueryError::TooManyRows {
            rows: 1_001,
            rows_max: 1_000,
        };
        assert_eq!(query(ROWS_MAX + 1, 0).check(), Err(too_many));
        let too_long = QueryError::SearchTooLong {
            bytes: 1_025,
            bytes_max: 1_024,
        };
        assert_eq!(query(1, CONTAINING_BYTES_MAX + 1).check(), Err(too_long));
    }
}
