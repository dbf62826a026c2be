//! Why a query cannot be answered.

use linerate_filter::Problem;
use thiserror::Error;

use super::{Field, RateKey, RuleFormat};
use crate::spill::SpillError;

/// Why a query cannot be answered. The figures of the whole log are not affected.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// The log has more requests than fit into the columns.
    #[error(
        "the log cannot be filtered: only {requests_kept} of its {requests} requests fit into the \
         {bytes_max} bytes that may be kept"
    )]
    ColumnsFull {
        /// The number of requests in the log.
        requests: u64,
        /// The number of requests that fit.
        requests_kept: u64,
        /// The most bytes of the columns.
        bytes_max: usize,
    },
    /// A period ends before it begins, or has no length.
    #[error("the period from {from} until {until}, in seconds since 1970, is empty")]
    EmptyPeriod {
        /// The first moment.
        from: i64,
        /// The first moment after the period.
        until: i64,
    },
    /// A filter is invalid for any log.
    #[error("{0}")]
    Filter(FilterError),
    /// The requests are counted by autonomous systems, but no database of those was given.
    #[error("the autonomous systems of addresses are unknown: no database of them was given")]
    NoAsns,
    /// The query concerns countries, but no country database was given.
    #[error("the countries of addresses are unknown: no country database was given")]
    NoCountries,
    /// The program cannot tell apart what the requests are counted by.
    #[error("{} cannot limit by {}", program.name(), by.name())]
    NoSuchRules {
        /// The program.
        program: RuleFormat,
        /// What the requests are counted by.
        by: RateKey,
    },
    /// The field has more distinct values than are tracked, and the filter may match some of the
    /// others.
    #[error(
        "the log has more than the {values_max} values of {} that can be tracked, and the filter \
         may match some of the others",
        field.name()
    )]
    NotToldApart {
        /// The field that the filter names.
        field: Field,
        /// The most distinct values that are tracked.
        values_max: usize,
    },
    /// The lines themselves were not kept.
    #[error("the lines of the log were not kept")]
    RowsNotKept,
    /// Not all requested lines fit into the memory for lines.
    #[error(
        "the lines cannot be shown: only the first {lines} fit into the {bytes_max} bytes that \
         may be kept"
    )]
    RowsFull {
        /// The number of requests whose lines are kept.
        lines: u64,
        /// The most bytes of the lines.
        bytes_max: usize,
    },
    /// The log has more requests than fit into memory, and not enough disk space.
    #[error("the log cannot be filtered: {reason}")]
    SpillFull {
        /// Why there is not enough space.
        reason: SpillError,
    },
    /// The temporary file with the requests of the log cannot be read.
    #[error("{0}")]
    SpillUnreadable(SpillError),
    /// The filters have more comparisons than a query may have.
    #[error("the filters have {conditions} comparisons; at most {conditions_max} are allowed")]
    TooManyConditions {
        /// The number of comparisons in all filters.
        conditions: usize,
        /// The limit.
        conditions_max: usize,
    },
    /// More lines were requested than may be returned at once.
    #[error("{rows} lines were requested; at most {rows_max} are allowed")]
    TooManyRows {
        /// The number of lines that were requested.
        rows: usize,
        /// The limit.
        rows_max: usize,
    },
    /// The values of this field cannot be listed.
    #[error(
        "the field has no list of values; those that have one are {}",
        Field::LISTED.map(Field::name).join(", ")
    )]
    NotListed,
    /// The text that lines are searched for is too long.
    #[error("the text to search for has {bytes} bytes; at most {bytes_max} are allowed")]
    SearchTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// More values were requested than a list may have.
    #[error("lists of {top} values were requested; at most {top_max} are allowed")]
    TopTooLong {
        /// The number of values that were requested.
        top: usize,
        /// The limit.
        top_max: usize,
    },
}

/// Which filter of a query is invalid, where, and why.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("filter {}, column {column}: {problem}", filter + 1)]
#[non_exhaustive]
pub struct FilterError {
    /// The index of the filter in the query, from 0.
    pub filter: usize,
    /// The position in its text, in characters from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: FilterProblem,
}

/// What is wrong with a filter.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum FilterProblem {
    /// `has` is used with a field that every request has.
    #[error("every request has {}{}", field.name(), with_a_value(*field))]
    AlwaysThere {
        /// The field.
        field: Field,
    },
    /// A field is compared with constants that none of its values equals or exceeds as required.
    #[error("no request can match: {} is {}", field.name(), field.values())]
    NeverTrue {
        /// The field.
        field: Field,
    },
    /// An address is compared with a text that has a slash but is not a network.
    #[error("invalid network; write 10.0.0.0/8 or 2001:db8::/32")]
    Network,
    /// A field of a field is used, but fields have no fields.
    #[error("{} is {} and has no fields", field.name(), field.kind())]
    NoFields {
        /// The outer field.
        field: Field,
    },
    /// `size` is used with a field that is not a string.
    #[error("{} is {} and has no size", field.name(), field.kind())]
    NoSize {
        /// The field.
        field: Field,
    },
    /// A field is used where a comparison is required.
    #[error("{} is not compared with anything", field.name())]
    NotCompared {
        /// The field.
        field: Field,
    },
    /// The size of a field is compared with something other than a number.
    #[error("the size of {} is a number; it cannot be compared with {found}", field.name())]
    SizeType {
        /// The field.
        field: Field,
        /// What it is compared with.
        found: &'static str,
    },
    /// The filter is not a valid expression.
    #[error("{0}")]
    Syntax(Problem),
    /// A field is compared with a value of another type.
    #[error("{} is {}; it cannot be compared with {found}", field.name(), field.kind())]
    Type {
        /// The field.
        field: Field,
        /// What it is compared with.
        found: &'static str,
    },
    /// The filter names a field that requests do not have.
    #[error("unknown field {name:?}; the fields are {}", Field::ALL.map(Field::name).join(", "))]
    UnknownField {
        /// The beginning of the name.
        name: String,
    },
    /// The filter uses a construct of the language that logs do not support.
    #[error("{construct} is not supported; filters for logs compare a field with constants")]
    Unsupported {
        /// A description of the construct.
        construct: &'static str,
    },
}

impl FilterProblem {
    pub(super) fn unknown(name: &str) -> Self {
        /// Longer than the name of any field.
        const NAME_CHARS_MAX: usize = 32;
        Self::UnknownField {
            name: name.chars().take(NAME_CHARS_MAX).collect(),
        }
    }
}

impl QueryError {
    /// Returns the error code on the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::ColumnsFull { .. } => "columns_full",
            Self::EmptyPeriod { .. } => "empty_period",
            Self::Filter(_) => "bad_filter",
            Self::NoAsns => "no_asns",
            Self::NoCountries => "no_countries",
            Self::NoSuchRules { .. } => "no_such_rules",
            Self::NotListed => "not_listed",
            Self::NotToldApart { .. } => "not_told_apart",
            Self::SearchTooLong { .. } => "search_too_long",
            Self::SpillFull { .. } => "columns_full",
            Self::SpillUnreadable(_) => "columns_unreadable",
            Self::RowsFull { .. } => "rows_full",
            Self::RowsNotKept => "rows_not_kept",
            Self::TooManyConditions { .. } => "too_many_conditions",
            Self::TooManyRows { .. } => "too_many_rows",
            Self::TopTooLong { .. } => "top_too_long",
        }
    }
}

/// Returns what to write in place of `has`, if the field may be empty.
fn with_a_value(field: Field) -> String {
    match field.is_number() {
        true => String::new(),
        false => format!(
            "; write {} != \"\" to select those with a value",
            field.name()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::QueryError;
    use crate::query::Field;

    #[test]
    fn errors_contain_the_request_and_the_limit() {
        let error = QueryError::NotToldApart {
            field: Field::Path,
            values_max: 131_072,
        };
        assert_eq!(
            error.to_string(),
            "the log has more than the 131072 values of path that can be tracked, and the filter \
             may match some of the others"
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
