//! Which requests are selected: filters and a period.

use linerate_logview::query::{Field, Period, Query, QueryError};

/// The fields that are searched for a text.
const SEARCHED: [Field; 5] = [
    Field::Path,
    Field::Address,
    Field::Agent,
    Field::Referrer,
    Field::Host,
];

/// The requests whose figures are shown.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Selection {
    /// Expressions that must all be true.
    pub(super) filters: Vec<String>,
    /// The first second, since 1970-01-01 UTC, and the first after the period.
    pub(super) from: Option<i64>,
    pub(super) until: Option<i64>,
}

impl Selection {
    pub(super) fn of(query: &Query) -> Self {
        Self {
            filters: query.filters.clone(),
            from: query.from,
            until: query.until,
        }
    }

    pub(super) fn query(&self, top_max: usize) -> Query {
        Query {
            from: self.from,
            until: self.until,
            filters: self.filters.clone(),
            top_max,
        }
    }

    /// Returns whether all requests are selected.
    pub(super) fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the selection with a filter added, or removed if it was there.
    pub(super) fn toggled(&self, filter: &str) -> Self {
        let mut toggled = self.clone();
        toggled.filters.retain(|it| it != filter);
        if toggled.filters.len() == self.filters.len() {
            toggled.filters.push(filter.to_owned());
        }
        toggled
    }

    /// Returns the part of the selection that is within a period.
    pub(super) fn within(&self, period: Period) -> Self {
        Self {
            filters: self.filters.clone(),
            from: Some(self.from.map_or(period.from, |from| from.max(period.from))),
            until: Some(
                self.until
                    .map_or(period.until, |until| until.min(period.until)),
            ),
        }
    }
}

/// Returns the filter that selects a value of a field, or all others.
pub(super) fn filter_of(field: Field, value: &str, comparison: &str) -> String {
    let constant = match value.parse::<u16>() {
        Ok(status) if field == Field::Status => status.to_string(),
        _ => constant(&value.replace('*', "[*]")),
    };
    format!("{} {comparison} {constant}", field.name())
}

/// Returns the filter for what was typed: an expression, or a text to look for.
///
/// # Errors
/// Returns the reason, with its column, if the text seems to be an expression but is not.
pub(super) fn typed(text: &str, has_countries: bool) -> Result<String, (Option<usize>, String)> {
    // Spaces at the beginning count for the column of an error.
    let query = Query {
        filters: vec![text.to_owned()],
        ..Query::default()
    };
    let text = text.trim();
    match query.fields() {
        Ok(fields) if fields.contains(&Field::Country) && !has_countries => Err((
            None,
            "country requires a database of countries: start with --geoip FILE".to_owned(),
        )),
        Ok(_) => Ok(text.to_owned()),
        Err(_) if !is_expression(text) => {
            let text = constant(text);
            let each = SEARCHED.map(|field| format!("{}.contains({text})", field.name()));
            Ok(each.join(" || "))
        }
        Err(QueryError::Filter(error)) => Err((Some(error.column), error.problem.to_string())),
        Err(error) => Err((None, error.to_string())),
    }
}

/// Returns the text that a filter of [`typed`] looks for.
pub(super) fn searched(filter: &str) -> Option<&str> {
    let (first, _) = filter.split_once(" || ")?;
    let quoted = first.strip_prefix("path.contains(")?.strip_suffix(')')?;
    let each = SEARCHED.map(|field| format!("{}.contains({quoted})", field.name()));
    (each.join(" || ") == filter).then_some(quoted)
}

/// Returns whether a text looks like an expression, however wrong, rather than a part of a value.
fn is_expression(text: &str) -> bool {
    let has_operator = ["=", "<", ">", "&&", "||", "\"", "'", " in "]
        .iter()
        .any(|operator| text.contains(operator));
    let has_call = text
        .match_indices('(')
        .any(|(at, _)| text[..at].ends_with(|char: char| char.is_ascii_alphanumeric()));
    has_operator || has_call || text.starts_with('!')
}

/// Returns a string literal. JSON strings are valid in filters.
fn constant(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use linerate_logview::query::{Field, Period, Query};

    use super::{Selection, filter_of, searched, typed};

    #[test]
    fn a_value_becomes_a_filter_that_is_valid() {
        let equal = |field, value| filter_of(field, value, "==");
        assert_eq!(equal(Field::Status, "404"), "status == 404");
        assert_eq!(equal(Field::Status, "007"), "status == 7");
        assert_eq!(equal(Field::Path, "/a*\"\\"), r#"path == "/a[*]\"\\""#);
        assert_eq!(
            filter_of(Field::Agent, "\u{1b}\u{202e}", "!="),
            "agent != \"\\u001b\u{202e}\""
        );
        assert_eq!(equal(Field::Referrer, ""), "referrer == \"\"");
        for filter in [
            equal(Field::Path, "/a*\"\\"),
            equal(Field::Agent, "\u{7f}\0"),
        ] {
            let query = Query {
                filters: vec![filter],
                ..Query::default()
            };
            assert!(query.fields().is_ok(), "{query:?}");
        }
    }

    #[test]
    fn a_filter_is_added_and_removed_by_the_same_value() {
        let all = Selection::default();
        let one = all.toggled("status == 404");
        assert_eq!(one.filters, ["status == 404"]);
        let two = one.toggled("path == \"/\"");
        assert_eq!(two.toggled("status == 404").filters, ["path == \"/\""]);
        assert!(one.toggled("status == 404").is_all());
    }

    #[test]
    fn periods_only_get_shorter() {
        let within = |selection: &Selection, from, until| selection.within(Period { from, until });
        let first = within(&Selection::default(), 10, 20);
        assert_eq!((first.from, first.until), (Some(10), Some(20)));
        let second = within(&first, 5, 15);
        assert_eq!((second.from, second.until), (Some(10), Some(15)));
    }

    #[test]
    fn what_is_typed_is_an_expression_or_a_text() {
        let typed = |text| typed(text, false);
        assert_eq!(typed(" status >= 500 ").unwrap(), "status >= 500");
        let text = typed("wp-login").unwrap();
        assert!(text.starts_with("path.contains(\"wp-login\") || address"));
        assert_eq!(searched(&text), Some("\"wp-login\""));
        assert_eq!(searched("path.contains(\"a\") || status == 4"), None);
        // Not an expression, although it has brackets.
        assert!(typed("Mozilla/5.0 (X11").is_ok());
        let (column, problem) = typed("status = 404").unwrap_err();
        assert_eq!((column, &*problem), (Some(8), "found =, expected =="));
        assert!(typed("status == \"404\"").is_err());
        assert!(
            typed("city == \"Rome\"")
                .unwrap_err()
                .1
                .contains("unknown field")
        );
        assert!(
            typed("country == \"DE\"")
                .unwrap_err()
                .1
                .contains("--geoip")
        );
        assert!(typed("path.contains(").is_err());
    }
}
