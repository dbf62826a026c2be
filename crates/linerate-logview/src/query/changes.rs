//! The question what has changed between two periods.

use serde::{Deserialize, Serialize};

use super::{Query, QueryError, TOP_DEFAULT};

/// A period of a log.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Period {
    /// The first moment, in seconds since 1970-01-01 UTC.
    pub from: i64,
    /// The first moment after the period, likewise.
    pub until: i64,
}

/// Asks which values explain the difference between two periods.
///
/// ```
/// use linerate_logview::query::{ChangesQuery, Period};
///
/// let after = Period { from: 600, until: 660 };
/// let query = ChangesQuery {
///     filters: vec!["status >= 500".into()],
///     ..ChangesQuery::new(after.preceding(), after)
/// };
/// assert_eq!(query.before, Period { from: 540, until: 600 });
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ChangesQuery {
    /// The period that the other one is compared with.
    pub before: Period,
    /// The period whose requests are to be explained. The periods may have different lengths.
    pub after: Period,
    /// The expressions that must be true for a request, as in a [`Query`].
    #[serde(default)]
    pub filters: Vec<String>,
    /// The most values in the answer, up to [`TOP_MAX`](super::TOP_MAX). Defaults to
    /// [`TOP_DEFAULT`].
    #[serde(default = "top_default")]
    pub top_max: usize,
}

impl Period {
    /// Returns the length in seconds; 0 if the period ends before it begins.
    pub fn seconds(self) -> u64 {
        match self.from < self.until {
            true => self.until.abs_diff(self.from),
            false => 0,
        }
    }

    /// Returns the period of the same length that ends where this one begins.
    pub fn preceding(self) -> Self {
        Self {
            from: self.from.saturating_sub_unsigned(self.seconds()),
            until: self.from,
        }
    }
}

impl ChangesQuery {
    /// Compares two periods, without filters.
    pub fn new(before: Period, after: Period) -> Self {
        Self {
            before,
            after,
            filters: Vec::new(),
            top_max: TOP_DEFAULT,
        }
    }

    /// Returns the query that selects the requests of one of the periods.
    ///
    /// # Errors
    /// The period is empty.
    pub(crate) fn of(&self, period: Period) -> Result<Query, QueryError> {
        let Period { from, until } = period;
        if period.seconds() == 0 {
            return Err(QueryError::EmptyPeriod { from, until });
        }
        Ok(Query {
            from: Some(from),
            until: Some(until),
            filters: self.filters.clone(),
            top_max: self.top_max,
        })
    }
}

/// Returns how many values an answer has unless the question says otherwise.
pub(super) const fn top_default() -> usize {
    TOP_DEFAULT
}

#[cfg(test)]
mod tests {
    use super::{ChangesQuery, Period};
    use crate::query::{QueryError, TOP_DEFAULT};

    #[test]
    fn questions_are_parsed_with_defaults() {
        let json = r#"{"before":{"from":0,"until":60},"after":{"from":60,"until":120}}"#;
        let query: ChangesQuery = serde_json::from_str(json).unwrap();
        assert_eq!(query, ChangesQuery::new(query.before, query.after));
        assert_eq!(query.top_max, TOP_DEFAULT);
        assert_eq!(query.after.preceding(), query.before);
    }

    #[test]
    fn extreme_periods_have_a_length() {
        let (min, max) = (i64::MIN, i64::MAX);
        let all = Period {
            from: min,
            until: max,
        };
        assert_eq!(all.seconds(), u64::MAX);
        assert_eq!(all.preceding().seconds(), 0);
        let reversed = Period {
            from: max,
            until: min,
        };
        assert_eq!(reversed.seconds(), 0);
        let query = ChangesQuery::new(all, reversed);
        let expected = QueryError::EmptyPeriod {
            from: max,
            until: min,
        };
        assert_eq!(query.of(query.after), Err(expected));
        assert!(query.of(all).is_ok());
    }
}
