//! Selection of requests: `--filter 'status >= 500' --from 2021-01-22T02:00`.

use anyhow::{Context, anyhow, bail};
use clap::Args;
use linerate_logview::query::{Field, Query, QueryError};
use time::{Date, OffsetDateTime, PrimitiveDateTime, format_description};

/// The options that select requests.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(super) struct Filters {
    /// Count only requests for which this is true: 'status >= 500 && path.startsWith("/api/")'. May
    /// be repeated; then all filters must be true.
    ///
    /// The language is a subset of CEL, the same as for subscribers' filters: == != < <= > >= in &&
    /// || ! startsWith endsWith contains size. The string fields are address, agent, bot (as in the
    /// table of bots), country (two-letter ISO 3166 code; requires --geoip), host, method, path
    /// (without its query), referrer and status_class ("5xx"); a missing value is "". The number
    /// fields are bytes_sent, duration_us, status and time (seconds since 1970).
    #[arg(long = "filter", value_name = "EXPRESSION")]
    filters: Vec<String>,

    /// Count only requests at or after this time, in UTC unless it has a time zone: 2021-01-22,
    /// 2021-01-22T01:47, 2021-01-22T01:47:05+01:00, or seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<i64>,

    /// Count only requests before this time, in the same formats as --from.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<i64>,
}

impl Filters {
    /// Returns the query for the selected requests, or `None` if all requests are selected.
    ///
    /// # Errors
    /// Returns an error if a filter is invalid, or if it uses `country` without a database of
    /// countries.
    pub(super) fn query(
        &self,
        top_max: usize,
        has_countries: bool,
    ) -> anyhow::Result<Option<Query>> {
        if self.filters.is_empty() && self.from.is_none() && self.until.is_none() {
            return Ok(None);
        }
        let query = Query {
            from: self.from,
            until: self.until,
            filters: self.filters.clone(),
            top_max,
        };
        let fields = query.fields().map_err(|error| self.explained(error))?;
        if fields.contains(&Field::Country) && !has_countries {
            bail!(
                "--filter uses country, which requires a database of countries: add --geoip FILE"
            );
        }
        Ok(Some(query))
    }

    /// Adds the text of the filter with a marker at the position of the error, if that is known.
    fn explained(&self, error: QueryError) -> anyhow::Error {
        let text = match &error {
            QueryError::Filter(error) => {
                self.filters.get(error.filter).map(|it| (it, error.column))
            }
            _ => None,
        };
        match text.filter(|(text, _)| !text.contains(char::is_control)) {
            Some((text, column)) => anyhow!("--filter: {error}\n  {text}\n  {:>column$}", '^'),
            None => anyhow!("--filter: {error}"),
        }
    }
}

/// Parses a time in any of several common notations; returns seconds since 1970-01-01 UTC.
fn moment(text: &str) -> anyhow::Result<i64> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let text = match text.split_once(' ') {
        Some((day, time)) if day.contains('-') => &format!("{day}T{time}"),
        _ => text,
    };
    let with_zone = [
        "[year]-[month]-[day]T[hour]:[minute]:[second][offset_hour sign:mandatory]:[offset_minute]",
        "[day]/[month repr:short]/[year]:[hour]:[minute]:[second] [offset_hour sign:mandatory][offset_minute]",
    ];
    for description in with_zone {
        let description = format_description::parse_borrowed::<2>(description)?;
        if let Ok(moment) = OffsetDateTime::parse(text, &description) {
            return Ok(moment.unix_timestamp());
        }
    }
    let without_zone = [
        "[year]-[month]-[day]T[hour]:[minute]:[second]",
        "[year]-[month]-[day]T[hour]:[minute]",
    ];
    let text = text.strip_suffix('Z').unwrap_or(text);
    for description in without_zone {
        let description = format_description::parse_borrowed::<2>(description)?;
        if let Ok(moment) = PrimitiveDateTime::parse(text, &description) {
            return Ok(moment.assume_utc().unix_timestamp());
        }
    }
    let description = format_description::parse_borrowed::<2>("[year]-[month]-[day]")?;
    let day = Date::parse(text, &description)
        .context("expected a time such as 2021-01-22 or 2021-01-22T01:47, or seconds since 1970")?;
    Ok(day.midnight().assume_utc().unix_timestamp())
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::{Filters, Query, moment};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        filters: Filters,
    }

    fn query(words: &[&str]) -> anyhow::Result<Option<Query>> {
        let line = Line::try_parse_from([&["logs"], words].concat()).unwrap();
        line.filters.query(20, false)
    }

    #[test]
    fn options_become_a_query() {
        assert_eq!(query(&[]).unwrap(), None);
        let filters = ["status >= 500", "path.startsWith(\"/api/\")"];
        let words = [
            "--filter", filters[0], "--from", "60", "--filter", filters[1],
        ];
        let query = query(&words).unwrap().unwrap();
        assert_eq!(query.filters, filters);
        assert_eq!(
            (query.from, query.until, query.top_max),
            (Some(60), None, 20)
        );
    }

    #[test]
    fn moments_are_read_as_people_write_them() {
        for text in [
            "1611280020",
            "2021-01-22T01:47",
            "2021-01-22 01:47",
            "2021-01-22T01:47:00",
            "2021-01-22T01:47:00Z",
            "2021-01-22T02:47:00+01:00",
            "22/Jan/2021:01:47:00 +0000",
        ] {
            assert_eq!(moment(text).unwrap(), 1_611_280_020, "{text}");
        }
        assert_eq!(moment("2021-01-22").unwrap(), 1_611_273_600);
        assert!(moment("yesterday").is_err());
        let error = Line::try_parse_from(["logs", "--from", "yesterday"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ValueValidation);
    }

    #[test]
    fn filters_that_are_wrong_are_shown_with_the_place() {
        let error = query(&["--filter", "true", "--filter", "status = 5"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--filter: filter 2, column 8: found =, expected ==\n  status = 5\n         ^"
        );
        let error = query(&["--filter", "country == \"DE\""]).unwrap_err();
        assert!(error.to_string().contains("--geoip"), "{error}");
    }
}
