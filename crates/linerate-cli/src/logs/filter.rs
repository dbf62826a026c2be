//! Selection of requests: `--filter 'status >= 500' --from 2021-01-22T02:00`.

use anyhow::{Context, anyhow, bail};
use clap::Args;
use linerate_logview::query::{ChangesQuery, Field, Period, Query, QueryError};
use time::{Date, OffsetDateTime, PrimitiveDateTime, format_description};

/// The options that select requests.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub(super) struct Filters {
    /// Count only requests for which this is true: 'status >= 500 && path.startsWith("/api/")'. May
    /// be repeated; then all filters must be true.
    ///
    /// The language is a subset of CEL, the same as for subscribers' filters: == != < <= > >= in &&
    /// || ! startsWith endsWith contains size. The string fields are address, agent, bot, browser
    /// and system (as in the tables of these), country (two-letter ISO 3166 code; requires
    /// --geoip), host, method, path (without its query), path_pattern ("/user/:id"), referrer and
    /// status_class ("5xx"); a missing value is "". The number fields are bytes_sent, duration_us,
    /// status and time (seconds since 1970).
    #[arg(long = "filter", value_name = "EXPRESSION")]
    filters: Vec<String>,

    /// Count only requests at or after this time, in UTC unless it has a time zone: 2021-01-22,
    /// 2021-01-22T01:47, 2021-01-22T01:47:05+01:00, or seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<i64>,

    /// Count only requests before this time, in the same formats as --from.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<i64>,

    /// Show which values explain why this period differs from another, instead of the statistics:
    /// 2021-01-22T02:00..2021-01-22T02:10, in the same formats as --from. Values whose requests
    /// grew or fell more than all requests did come first.
    #[arg(long, value_name = "PERIOD", value_parser = period, conflicts_with_all = ["from", "until"])]
    what_changed: Option<Period>,

    /// The period that --what-changed is compared with. The default is the period of the same
    /// length before it.
    #[arg(long, value_name = "PERIOD", value_parser = period, requires = "what_changed")]
    compared_with: Option<Period>,
}

/// What is shown of a log.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Selected {
    /// The statistics of all requests.
    All,
    /// The statistics of some requests.
    Some(Query),
    /// The values that explain a change.
    Changes(ChangesQuery),
}

impl Filters {
    /// Returns whether two periods are compared.
    pub(super) fn compares_periods(&self) -> bool {
        self.what_changed.is_some()
    }

    /// Returns what is selected.
    ///
    /// # Errors
    /// Returns an error if a filter is invalid, or if it uses `country` without a database of
    /// countries.
    pub(super) fn selected(&self, top_max: usize, has_countries: bool) -> anyhow::Result<Selected> {
        if self.filters.is_empty()
            && self.from.is_none()
            && self.until.is_none()
            && self.what_changed.is_none()
        {
            return Ok(Selected::All);
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
        let Some(after) = self.what_changed else {
            return Ok(Selected::Some(query));
        };
        Ok(Selected::Changes(ChangesQuery {
            before: self.compared_with.unwrap_or(after.preceding()),
            after,
            filters: query.filters,
            top_max,
        }))
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

/// Parses a period, `FROM..UNTIL`.
fn period(text: &str) -> anyhow::Result<Period> {
    let (from, until) = text
        .split_once("..")
        .context("expected two times, such as 2021-01-22T02:00..2021-01-22T02:10")?;
    let period = Period {
        from: moment(from)?,
        until: moment(until)?,
    };
    if period.seconds() == 0 {
        bail!("the period ends before it begins");
    }
    Ok(period)
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

    use linerate_logview::query::{ChangesQuery, Period};

    use super::{Filters, Selected, moment};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        filters: Filters,
    }

    fn selected(words: &[&str]) -> anyhow::Result<Selected> {
        let line = Line::try_parse_from([&["logs"], words].concat()).unwrap();
        line.filters.selected(20, false)
    }

    #[test]
    fn options_become_a_query() {
        assert_eq!(selected(&[]).unwrap(), Selected::All);
        let filters = ["status >= 500", "path.startsWith(\"/api/\")"];
        let words = [
            "--filter", filters[0], "--from", "60", "--filter", filters[1],
        ];
        let Selected::Some(query) = selected(&words).unwrap() else {
            panic!("some requests are selected");
        };
        assert_eq!(query.filters, filters);
        assert_eq!(
            (query.from, query.until, query.top_max),
            (Some(60), None, 20)
        );
    }

    #[test]
    fn a_period_is_compared_with_the_one_before_it_or_with_another() {
        let after = Period {
            from: 120,
            until: 180,
        };
        let mut expected = ChangesQuery::new(
            Period {
                from: 60,
                until: 120,
            },
            after,
        );
        let words = ["--what-changed", "120..180"];
        assert_eq!(
            selected(&words).unwrap(),
            Selected::Changes(expected.clone())
        );
        expected.before = Period { from: 0, until: 99 };
        let words = [&words[..], &["--compared-with", "0..99"]].concat();
        assert_eq!(selected(&words).unwrap(), Selected::Changes(expected));
        for wrong in ["120", "180..120", "5..5", "..", "2021-01-22..soon"] {
            assert!(Line::try_parse_from(["logs", "--what-changed", wrong]).is_err());
        }
        let words = ["logs", "--what-changed", "0..9", "--from", "5"];
        let error = Line::try_parse_from(words).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ArgumentConflict);
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
        let error = selected(&["--filter", "true", "--filter", "status = 5"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--filter: filter 2, column 8: found =, expected ==\n  status = 5\n         ^"
        );
        let error = selected(&["--filter", "country == \"DE\""]).unwrap_err();
        assert!(error.to_string().contains("--geoip"), "{error}");
    }
}
