//! Why a query can't be answered.

use std::error::Error;
use std::fmt;

use linerate_filter::Problem;

use super::Field;

/// Why a query can't be answered. The figures of the whole log are not concerned.
#[derive(Clone, Debug, Eq, PartialEq)]
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
    /// A filter can't be applied to any log.
    Filter(FilterError),
    /// Countries are asked for, and there is no database of them.
    NoCountries,
    /// The field has more values than are told apart, and a filter might concern those.
    NotToldApart {
        /// The field that the filter names.
        field: Field,
        /// How many values are told apart.
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
    /// There are more comparisons than one query may have.
    TooManyConditions {
        /// The comparisons of all filters.
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
}

/// Which filter of a query can't be applied, where, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FilterError {
    /// Its place in the query, from 0.
    pub filter: usize,
    /// Where in its text, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: FilterProblem,
}

/// What is wrong with a filter.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FilterProblem {
    /// `has` of a field that all requests have.
    AlwaysThere {
        /// The field.
        field: Field,
    },
    /// A field of a field.
    NoFields {
        /// The outer one.
        field: Field,
    },
    /// The size of a field that is not a string.
    NoSize {
        /// The field.
        field: Field,
    },
    /// A field where a comparison has to be.
    NotCompared {
        /// The field.
        field: Field,
    },
    /// The size of a field is compared with what is not a number.
    SizeType {
        /// The field.
        field: Field,
        /// What it is compared with.
        found: &'static str,
    },
    /// It is not an expression.
    Syntax(Problem),
    /// A field is compared with a value of another type.
    Type {
        /// The field.
        field: Field,
        /// What it is compared with.
        found: &'static str,
    },
    /// A field that requests don't have.
    UnknownField {
        /// The beginning of its name.
        name: String,
    },
    /// A construct of the language that is not for logs.
    Unsupported {
        /// Its name.
        construct: &'static str,
    },
}

impl FilterProblem {
    pub(super) fn unknown(name: &str) -> Self {
        /// No field has a longer name.
        const NAME_CHARS_MAX: usize = 32;
        Self::UnknownField {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
        }
    }
}

impl QueryError {
    /// Returns the name of the error on the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ColumnsFull { .. } => "columns_full",
            Self::Filter(_) => "bad_filter",
            Self::NoCountries => "no_countries",
            Self::NotToldApart { .. } => "not_told_apart",
            Self::RowsFull { .. } => "rows_full",
            Self::RowsNotKept => "rows_not_kept",
            Self::TooManyConditions { .. } => "too_many_conditions",
            Self::TooManyRows { .. } => "too_many_rows",
            Self::TopTooLong { .. } => "top_too_long",
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
            Self::Filter(error) => error.fmt(f),
            Self::NoCountries => f.write_str(
                "the countries of addresses are not known: no database of them was given",
            ),
            Self::NotToldApart { field, values_max } => write!(
                f,
                "the log has more than the {values_max} values of {} that are told apart, and \
                 the filter may concern the others",
                field.name()
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
                "the filters have {conditions} comparisons; at most {conditions_max} are allowed"
            ),
            Self::TooManyRows { rows, rows_max } => {
                write!(f, "{rows} lines were asked for, {rows_max} are allowed")
            }
            Self::TopTooLong { top, top_max } => write!(
                f,
                "lists of {top} values were asked for, {top_max} are allowed"
            ),
        }
    }
}

impl Error for QueryError {}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            filter,
            column,
            problem,
        } = self;
        write!(f, "filter {}, column {column}: {problem}", filter + 1)
    }
}

impl Error for FilterError {}

impl fmt::Display for FilterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AlwaysThere { field } => {
                let name = field.name();
                write!(f, "every request has {name}")?;
                match field.is_number() {
                    true => Ok(()),
                    false => write!(f, "; write {name} != \"\" for those with a value"),
                }
            }
            Self::NoFields { field } => {
                write!(f, "{} is {} and has no fields", field.name(), field.kind())
            }
            Self::NoSize { field } => {
                write!(f, "{} is {} and has no size", field.name(), field.kind())
            }
            Self::NotCompared { field } => {
                write!(f, "{} is not compared with anything", field.name())
            }
            Self::SizeType { field, found } => write!(
                f,
                "the size of {} is a number; it can't be compared with {found}",
                field.name()
            ),
            Self::Syntax(problem) => problem.fmt(f),
            Self::Type { field, found } => write!(
                f,
                "{} is {}; it can't be compared with {found}",
                field.name(),
                field.kind()
            ),
            Self::UnknownField { name } => {
                write!(f, "there is no field {name:?}; fields are")?;
                for (at, field) in Field::ALL.into_iter().enumerate() {
                    let comma = if at == 0 { "" } else { "," };
                    write!(f, "{comma} {}", field.name())?;
                }
                Ok(())
            }
            Self::Unsupported { construct } => write!(
                f,
                "{construct} is not supported; filters of logs compare a field with constants"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::QueryError;
    use crate::query::Field;

    #[test]
    fn errors_name_what_was_asked_and_the_limit() {
        let error = QueryError::NotToldApart {
            field: Field::Path,
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
            "the filters have 65 comparisons; at most 64 are allowed"
        );
        assert_eq!(error.code(), "too_many_conditions");
    }
}
