//! What of a log is to be looked at: a range of time and values to keep or to leave out.

use serde::{Deserialize, Serialize};

mod error;
pub(crate) mod filter;
mod pattern;

pub use error::QueryError;

/// How many values each list of a summary has unless a query asks for more.
pub const TOP_DEFAULT: usize = 20;
/// How many values a query may ask for in each list: what a page can still show.
pub const TOP_MAX: usize = 1_000;

/// Chooses requests by time and by value.
///
/// A request is chosen if it lies within the range of time, has one of the included values in
/// every dimension that has any, and none of the excluded ones.
///
/// ```
/// use linerate_logview::query::{Dimension, Query};
///
/// let query: Query = serde_json::from_str(
///     r#"{"from":1611280020,"conditions":[{"dimension":"path","value":"/api/*"}]}"#,
/// )?;
/// assert_eq!(query.from, Some(1_611_280_020));
/// assert_eq!(query.conditions[0].dimension, Dimension::Path);
/// assert!(!query.conditions[0].exclude);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct Query {
    /// The first moment that is chosen, in seconds since 1970-01-01 UTC; all from the beginning
    /// if `None`.
    pub from: Option<i64>,
    /// The first moment that isn't any more, likewise; all up to the end if `None`.
    pub until: Option<i64>,
    /// What values are chosen and which are not.
    pub conditions: Vec<Condition>,
    /// How many values each list has, up to [`TOP_MAX`]; [`TOP_DEFAULT`] unless given.
    pub top_max: usize,
}

impl Default for Query {
    fn default() -> Self {
        Self {
            from: None,
            until: None,
            conditions: Vec::new(),
            top_max: TOP_DEFAULT,
        }
    }
}

/// A value to keep or to leave out.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Condition {
    /// What the value is one of.
    pub dimension: Dimension,
    /// The value, as the lists of a [`Summary`](crate::summary::Summary) show it. A `*` at its
    /// beginning or end stands for any text. The empty one stands for requests without a value.
    pub value: String,
    /// Whether requests with that value are left out.
    #[serde(default)]
    pub exclude: bool,
}

/// What requests can be told apart by.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dimension {
    /// The client's address.
    Address,
    /// The `User-Agent` header.
    Agent,
    /// The program that the agent is of, by its name in [`Summary::bots`].
    ///
    /// [`Summary::bots`]: crate::summary::Summary::bots
    Bot,
    /// The country of the address, by its ISO code. The empty one stands for addresses of which it is
    /// not known.
    Country,
    /// The virtual host.
    Host,
    /// The method.
    Method,
    /// The path without its query.
    Path,
    /// The `Referer` header.
    Referrer,
    /// The status, three digits.
    Status,
    /// The class of the status: `1xx` to `5xx`, or `other`.
    StatusClass,
}

impl Dimension {
    /// Returns its name for people and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Agent => "agent",
            Self::Bot => "bot",
            Self::Country => "country",
            Self::Host => "host",
            Self::Method => "method",
            Self::Path => "path",
            Self::Referrer => "referrer",
            Self::Status => "status",
            Self::StatusClass => "status_class",
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
    use super::{Condition, Dimension, Query, TOP_DEFAULT};

    #[test]
    fn queries_are_read_with_their_defaults_and_written_back() {
        let query: Query = serde_json::from_str("{}").unwrap();
        assert_eq!(query, Query::default());
        assert_eq!(query.top_max, TOP_DEFAULT);
        let query = Query {
            from: Some(-1),
            until: Some(60),
            conditions: vec![Condition {
                dimension: Dimension::StatusClass,
                value: "5xx".into(),
                exclude: true,
            }],
            top_max: 7,
        };
        let json = serde_json::to_value(&query).unwrap();
        assert_eq!(json["conditions"][0]["dimension"], "status_class");
        assert_eq!(serde_json::from_value::<Query>(json).unwrap(), query);
    }

    #[test]
    fn names_of_dimensions_are_those_on_the_wire() {
        for dimension in [
            Dimension::Address,
            Dimension::Agent,
            Dimension::Bot,
            Dimension::Country,
            Dimension::Host,
            Dimension::Method,
            Dimension::Path,
            Dimension::Referrer,
            Dimension::Status,
            Dimension::StatusClass,
        ] {
            let json = serde_json::to_value(dimension).unwrap();
            assert_eq!(json, dimension.name());
        }
        assert!(serde_json::from_str::<Dimension>("\"city\"").is_err());
    }
}
