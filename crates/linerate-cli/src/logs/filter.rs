//! Which requests are looked at: `--status 5xx --path '!/health*' --from 2021-01-22T02:00`.

use anyhow::{Context, bail};
use clap::Args;
use linerate_logview::query::{Condition, Dimension, Query};
use time::{Date, OffsetDateTime, PrimitiveDateTime, format_description};

/// Options that choose requests. Each may be given several times; a `!` in front leaves out.
#[derive(Args, Debug, Default)]
#[command(
    next_help_heading = "Filters (a `*` at the beginning or end stands for anything, a `!` in front leaves out)"
)]
pub(super) struct Filters {
    /// Only requests with this status or class of statuses: 404, 5xx, '!3xx'; several with commas.
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<String>,

    /// Only requests for this path (without its query): /login, '/api/*', '!*.png'.
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,

    /// Only requests from this address: 192.0.2.7, '2001:db8:*'.
    #[arg(long, value_name = "ADDRESS")]
    address: Vec<String>,

    /// Only requests with this method: POST, '!GET'; several with commas.
    #[arg(long, value_name = "METHOD", value_delimiter = ',')]
    method: Vec<String>,

    /// Only requests to this virtual host.
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,

    /// Only requests by this agent: '*bot*'. The empty one stands for requests without.
    #[arg(long, value_name = "AGENT")]
    agent: Vec<String>,

    /// Only requests by this program, named as in the table of bots: Googlebot; '!*' leaves out
    /// all of them.
    #[arg(long, value_name = "BOT")]
    bot: Vec<String>,

    /// Only requests from this country, by the two letters of ISO 3166: DE, '!US'; needs --geoip. The
    /// empty one stands for addresses of which it is not known.
    #[arg(long, value_name = "CODE", requires = "geoip")]
    country: Vec<String>,

    /// Only requests with this referrer. The empty one stands for requests without.
    #[arg(long, value_name = "REFERRER")]
    referrer: Vec<String>,

    /// Only requests since then, in UTC unless a zone is given: 2021-01-22, 2021-01-22T01:47,
    /// 2021-01-22T01:47:05+01:00, or seconds since 1970.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    from: Option<i64>,

    /// Only requests before then, likewise.
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<i64>,
}

impl Filters {
    /// Returns the query that asks for these requests, `None` for one that asks for all.
    ///
    /// # Errors
    /// A status is none.
    pub(super) fn query(&self, top_max: usize) -> anyhow::Result<Option<Query>> {
        let mut conditions = Vec::new();
        for status in &self.status {
            conditions.push(status_condition(status)?);
        }
        for (dimension, values) in [
            (Dimension::Path, &self.path),
            (Dimension::Address, &self.address),
            (Dimension::Method, &self.method),
            (Dimension::Host, &self.host),
            (Dimension::Agent, &self.agent),
            (Dimension::Bot, &self.bot),
            (Dimension::Country, &self.country),
            (Dimension::Referrer, &self.referrer),
        ] {
            conditions.extend(values.iter().map(|value| condition(dimension, value)));
        }
        if conditions.is_empty() && self.from.is_none() && self.until.is_none() {
            return Ok(None);
        }
        Ok(Some(Query {
            from: self.from,
            until: self.until,
            conditions,
            top_max,
        }))
    }
}

fn condition(dimension: Dimension, text: &str) -> Condition {
    let value = text.strip_prefix('!');
    Condition {
        dimension,
        value: value.unwrap_or(text).to_owned(),
        exclude: value.is_some(),
    }
}

fn status_condition(text: &str) -> anyhow::Result<Condition> {
    let by_code = condition(Dimension::Status, text);
    let dimension = match by_code.value.as_bytes() {
        [b'1'..=b'5', b'x' | b'X', b'x' | b'X'] => Dimension::StatusClass,
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] => Dimension::Status,
        _ => bail!("--status {text}: a status has three digits, a class is 1xx to 5xx"),
    };
    Ok(Condition {
        dimension,
        value: by_code.value.to_ascii_lowercase(),
        ..by_code
    })
}

/// Reads a moment as people write it, in seconds since 1970-01-01 UTC.
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
        .context("it is neither 2021-01-22 nor 2021-01-22T01:47 nor seconds since 1970")?;
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

    fn query(line: &str) -> Option<Query> {
        let words = std::iter::once("logs").chain(line.split_whitespace());
        let line = Line::try_parse_from(words).unwrap();
        line.filters.query(20).unwrap()
    }

    #[test]
    fn options_become_conditions() {
        assert_eq!(query(""), None);
        let query =
            query("--status 404,!5XX --path /api/* --path !*.png --method !GET --from 60").unwrap();
        let seen: Vec<_> = query
            .conditions
            .iter()
            .map(|it| format!("{} {} {}", it.dimension.name(), it.value, it.exclude))
            .collect();
        assert_eq!(
            seen,
            [
                "status 404 false",
                "status_class 5xx true",
                "path /api/* false",
                "path *.png true",
                "method GET true"
            ]
        );
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
    fn what_is_no_status_is_refused() {
        for status in ["40", "6xx", "x", "!", "4x4"] {
            let line = Line::try_parse_from(["logs", "--status", status]).unwrap();
            let error = line.filters.query(20).unwrap_err().to_string();
            assert!(error.contains("three digits"), "{error}");
        }
    }
}
