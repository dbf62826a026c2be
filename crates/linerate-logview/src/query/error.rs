//! Why a query can't be answered.

use std::error::Error;
use std::fmt;

use super::Dimension;

/// Why a query can't be answered. The figures of the whole log are not concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// The log has more requests than the columns may hold.
    ColumnsFull {
        /// The requests of the log.
        requests: u64,
        /// Those that fit.
        requests_kept: u64,
        /// How many bytes the columns may take up.
        bytes_max: usize,
    },
    /// Countries are asked for, and there is no database of them.
    NoCountries,
    /// The dimension has more values than are told apart, and the condition might concern those.
    NotToldApart {
        /// The dimension of the condition.
        dimension: Dimension,
        /// How many of its values are told apart.
        values_max: usize,
    },
    /// The lines themselves were not to be kept.
    RowsNotKept,
    /// The log is longer than the lines that may be kept.
    RowsFull {
        /// The requests whose lines are kept.
        lines: u64,
        /// How many bytes the lines may take up.
        bytes_max: usize,
    },
    /// There are more conditions than one query may have.
    TooManyConditions {
        /// The conditions.
        conditions: usize,
        /// How many there may be.
        conditions_max: usize,
    },
    /// More lines were asked for than are given at once.
    TooManyRows {
        /// The lines that were asked for.
        rows: usize,
        /// How many may be.
        rows_max: usize,
    },
    /// More values were asked for than a list may have.
    TopTooLong {
        /// The values that were asked for.
        top: usize,
        /// How many may be.
        top_max: usize,
    },
    /// The value of a condition is longer than any value that is kept.
    ValueTooLong {
        /// Its length in bytes.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
}

impl QueryError {
    /// Returns the name of the error on the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ColumnsFull { .. } => "columns_full",
            Self::NoCountries => "no_countries",
            Self::NotToldApart { .. } => "not_told_apart",
            Self::RowsFull { .. } => "rows_full",
            Self::RowsNotKept => "rows_not_kept",
            Self::TooManyConditions { .. } => "too_many_conditions",
            Self::TooManyRows { .. } => "too_many_rows",
            Self::TopTooLong { .. } => "top_too_long",
            Self::ValueTooLong { .. } => "value_too_long",
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ColumnsFull {
                requests,
                requests_kept,
                bytes_max,
            } => write!(
                f,
                "the log can't be filtered: of its {requests} requests {requests_kept} fit into \
                 the {bytes_max} bytes that may be kept of it"
            ),
            Self::NoCountries => f.write_str(
                "the countries of addresses are not known: no database of them was given",
            ),
            Self::NotToldApart {
                dimension,
                values_max,
            } => write!(
                f,
                "the log has more than the {values_max} values of {} that are told apart, and \
                 the filter may concern the others",
                dimension.name()
            ),
            Self::RowsFull { lines, bytes_max } => write!(
                f,
                "the lines can't be shown: only the first {lines} fit into the {bytes_max} bytes \
                 that may be kept of them"
            ),
            Self::RowsNotKept => f.write_str("the lines of the log are not kept"),
            Self::TooManyConditions {
                conditions,
                conditions_max,
            } => write!(
                f,
                "the filter has {conditions} conditions, {conditions_max} are allowed"
            ),
            Self::TooManyRows { rows, rows_max } => {
                write!(f, "{rows} lines were asked for, {rows_max} are allowed")
            }
            Self::TopTooLong { top, top_max } => write!(
                f,
                "lists of {top} values were asked for, {top_max} are allowed"
            ),
            Self::ValueTooLong { bytes, bytes_max } => write!(
                f,
                "a value of {bytes} bytes was asked for, {bytes_max} are allowed"
            ),
        }
    }
}

impl Error for QueryError {}

#[cfg(test)]
mod tests {
    use super::QueryError;
    use crate::query::Dimension;

    #[test]
    fn errors_name_what_was_asked_and_the_limit() {
        let error = QueryError::NotToldApart {
            dimension: Dimension::Path,
            values_max: 131_072,
        };
        assert_eq!(
            error.to_string(),
            "the log has more than the 131072 values of path that are told apart, and the filter \
             may concern the others"
        );
        let error = QueryError::TooManyConditions {
            conditions: 65,
            conditions_max: 64,
        };
        assert_eq!(
            error.to_string(),
            "the filter has 65 conditions, 64 are allowed"
        );
        assert_eq!(error.code(), "too_many_conditions");
    }
}
