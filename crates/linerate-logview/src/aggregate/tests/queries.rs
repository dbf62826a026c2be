//! The figures and lines of a query equal those of a log that contains only the lines it selects.

use linerate_filter::{Filter, Limits as FilterLimits};
use proptest::prelude::*;
use serde_json::json;

use crate::aggregate::{Aggregator, Limits, bots, browsers, patterns};
use crate::format::Format;
use crate::query::{FilterError, FilterProblem, Query, QueryError, RowsQuery};
use crate::summary::{Filterable, RowsKept, Summary};

/// The format of the lines of these tests.
const FORMAT: &str = "$remote_addr [$time_local] \"$request\" $status $body_bytes_sent \
                      \"$http_referer\" \"$http_user_agent\" $request_time";

/// A request whose parts are drawn from a few values.
#[derive(Clone, Debug)]
pub(super) struct Request {
    address: &'static str,
    time: i64,
    method: &'static str,
    path: &'static str,
    status: u16,
    bytes: u64,
    referrer: &'static str,
    agent: &'static str,
    duration_ms: Option<u64>,
}

impl Request {
    fn line(&self) -> String {
        let Self {
            address,
            time,
            method,
            path,
            status,
            bytes,
            referrer,
            agent,
            duration_ms,
        } = self;
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        let duration = match duration_ms {
            Some(ms) => format!("{}.{:03}", ms / 1_000, ms % 1_000),
            None => "-".to_owned(),
        };
        format!(
            "{address} [22/Jan/2021:{hour:02}:{minute:02}:{second:02} +0000] \
             \"{method} {path} HTTP/1.1\" {status} {bytes} \"{referrer}\" \"{agent}\" {duration}\n"
        )
    }

    /// Returns the request as the object that filters are applied to.
    fn json(&self) -> String {
        let text = |text: &'static str| text.strip_prefix('-').unwrap_or(text);
        let mut object = json!({
            "address": self.address,
            "agent": text(self.agent),
            "bot": bots::name(text(self.agent).as_bytes()).unwrap_or_default(),
            "browser": browsers::browser(text(self.agent).as_bytes()).unwrap_or_default(),
            "bytes_sent": self.bytes,
            "host": "",
            "method": self.method,
            "path": self.path,
            "path_pattern": String::from_utf8_lossy(&patterns::pattern(self.path.as_bytes())),
            "referrer": text(self.referrer),
            "status": self.status,
            "status_class": format!("{}xx", self.status / 100),
            "system": browsers::system(text(self.agent).as_bytes()).unwrap_or_default(),
            "time": DAY + self.time,
        });
        if let Some(ms) = self.duration_ms {
            object["duration_us"] = (ms * 1_000).into();
        }
        object.to_string()
    }

    /// Returns whether a query selects the request, by the meaning that filters have for
    /// publications.
    fn is_chosen(&self, query: &Query) -> bool {
        let time = DAY + self.time;
        let json = self.json();
        let is_true = |text: &String| {
            let filter = Filter::new(text, &FilterLimits::new(1 << 20, 1 << 20)).unwrap();
            filter.matches(json.as_bytes())
        };
        query.from.is_none_or(|from| time >= from)
            && query.until.is_none_or(|until| time < until)
            && query.filters.iter().all(is_true)
    }
}

/// The start of the day of all requests.
const DAY: i64 = 1_611_273_600;
const ADDRESSES: [&str; 3] = ["192.0.2.7", "2001:db8::7", "192.0.2.70"];
const PATHS: [&str; 6] = ["/", "/a", "/a/b", "/b/7", "/b", "/ä"];
const AGENTS: [&str; 5] = [
    "-",
    "Firefox",
    "Googlebot/2.1",
    "xbot",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:84.0) Gecko/20100101 Firefox/84.0",
];

pub(super) fn any_request() -> impl Strategy<Value = Request> {
    (
        prop::sample::select(&ADDRESSES[..]),
        0i64..86_400,
        prop::sample::select(vec!["GET", "POST"]),
        prop::sample::select(&PATHS[..]),
        prop::sample::select(vec![200u16, 301, 404, 502]),
        0u64..1_000,
        prop::sample::select(vec!["-", "https://a.example/"]),
        prop::sample::select(&AGENTS[..]),
        prop::option::of(0u64..3_000),
    )
        .prop_map(
            |(address, time, method, path, status, bytes, referrer, agent, duration_ms)| Request {
                address,
                time,
                method,
                path,
                status,
                bytes,
                referrer,
                agent,
                duration_ms,
            },
        )
}

/// Asks for the lines that a query selects.
fn rows_of(query: &Query, offset: u64, limit: usize) -> RowsQuery {
    RowsQuery {
        query: query.clone(),
        offset,
        limit,
        ..RowsQuery::default()
    }
}

/// Returns a comparison of a string field.
fn any_text() -> impl Strategy<Value = String> {
    let fields = vec![
        "address",
        "agent",
        "bot",
        "browser",
        "data.host",
        "method",
        "data[\"path\"]",
        "path_pattern",
        "referrer",
        "status_class",
        "system",
    ];
    let constants = vec![
        "",
        "/",
        "/a",
        "b",
        "ä",
        "GET",
        "192.0.2.7",
        "192",
        "bot",
        "/b/:id",
        "Windows 10",
        "Googlebot",
        "4xx",
        "Firefox",
    ];
    let tests = vec![
        "@ == #",
        "@ != #",
        "# == @",
        "@ < #",
        "@ <= #",
        "# < @",
        "@ >= #",
        "@.startsWith(#)",
        "@.endsWith(#)",
        "@.contains(#)",
        "@ in [#, \"/a\", \"xbot\"]",
        "@ in []",
        "size(@) > 2",
        "@.size() != 4",
    ];
    (
        prop::sample::select(fields),
        prop::sample::select(constants),
        prop::sample::select(tests),
    )
        .prop_map(|(field, constant, test)| {
            test.replace('@', field)
                .replace('#', &format!("{constant:?}"))
        })
}

/// Returns a comparison of a number field.
fn any_number() -> impl Strategy<Value = String> {
    let constants = vec![
        "0", "200", "404", "-1", "404.5", "1e6", "1e300", "600", "500000",
    ];
    let constants = prop_oneof![
        prop::sample::select(constants).prop_map(str::to_owned),
        (DAY..DAY + 86_400).prop_map(|it| it.to_string()),
    ];
    let tests = vec![
        "@ == #",
        "@ != #",
        "# > @",
        "@ < #",
        "@ <= #",
        "@ >= #",
        "@ > #",
        "@ in [#, 200, 502.0]",
    ];
    (
        prop::sample::select(vec!["status", "bytes_sent", "duration_us", "time"]),
        constants,
        prop::sample::select(tests),
    )
        .prop_map(|(field, constant, test)| test.replace('@', field).replace('#', &constant))
}

fn any_filter() -> impl Strategy<Value = String> {
    let others = vec!["true", "false", "has(data.duration_us)"];
    let leaf = prop_oneof![
        4 => any_text(),
        3 => any_number(),
        1 => prop::sample::select(others).prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let some = prop::collection::vec(inner.clone(), 2..4);
        prop_oneof![
            some.clone().prop_map(|it| it.join(" && ")),
            some.prop_map(|it| format!("({})", it.join(" || "))),
            inner.prop_map(|it| format!("!({it})")),
        ]
    })
}

pub(super) fn any_query() -> impl Strategy<Value = Query> {
    (
        prop::option::of(DAY..DAY + 86_400),
        prop::option::of(DAY..DAY + 86_400),
        prop::collection::vec(any_filter(), 0..3),
    )
        .prop_map(|(from, until, filters)| Query {
            from,
            until,
            filters,
            ..Query::default()
        })
}

pub(super) fn log<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Aggregator {
    let mut log = Aggregator::new(Limits {
        line_bytes_sum_max: 1 << 20,
        ..Limits::default()
    });
    log.set_format(Format::parse(FORMAT).unwrap());
    for request in requests {
        log.handle_input(request.line().as_bytes());
    }
    log
}

/// Resets the members that describe the whole log even in the figures of a query.
pub(super) fn of_chosen(mut summary: Summary) -> Summary {
    (summary.lines, summary.bytes_read) = (0, 0);
    (summary.filterable, summary.rows_kept) = (Filterable::default(), RowsKept::default());
    summary
}

proptest! {
    #[test]
    fn query_has_the_figures_and_the_lines_that_filters_of_publications_choose(
        requests in prop::collection::vec(any_request(), 0..200),
        query in any_query(),
    ) {
        let chosen: Vec<_> = requests.iter().filter(|it| it.is_chosen(&query)).collect();
        let whole = log(&requests);
        let found = whole.figures(&query);
        // The language of publications does not know which values a field can have.
        if let Err(QueryError::Filter(FilterError { problem, .. })) = &found
            && matches!(problem, FilterProblem::NeverTrue { .. } | FilterProblem::Network)
        {
            return Ok(());
        }
        let mut found = found.unwrap();
        let rows = whole.rows(&rows_of(&query, 0, 1_000)).unwrap();
        let lines = rows.rows.iter().map(|row| format!("{}\n", row.text));
        prop_assert_eq!(
            lines.collect::<Vec<_>>(),
            chosen.iter().map(|it| it.line()).collect::<Vec<_>>()
        );
        let expected = log(chosen).summary();
        // In the figures of a query, buckets may be shorter than a minute.
        let sum = |summary: &Summary| -> u64 { summary.timeline.bytes.iter().sum() };
        prop_assert_eq!(sum(&found), sum(&expected));
        found.timeline = expected.timeline.clone();
        prop_assert_eq!(of_chosen(found), of_chosen(expected));
    }
}

#[test]
fn query_for_everything_gives_the_live_figures() {
    let mut log = Aggregator::new(Limits::default());
    log.handle_input(&[super::cuts::ODD_LOG, b"\n"].concat().repeat(700));
    let all = log.figures(&Query::default()).unwrap();
    assert!(all.requests > 7_000);
    assert_eq!(all, log.summary());
}

#[test]
fn a_bot_has_the_requests_of_all_agents_of_its_name() {
    let mut log = Aggregator::new(Limits::default());
    for (agent, requests) in [
        (
            "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
            3,
        ),
        ("facebookexternalhit/1.0", 2),
        ("I like Facebook", 5),
        ("ia_archiver", 4),
    ] {
        let line = format!(
            "::1 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"{agent}\"\n"
        );
        log.handle_input(line.repeat(requests).as_bytes());
    }
    let bots = log.summary().bots.top;
    assert_eq!(bots.len(), 2);
    for bot in bots {
        let query = Query {
            filters: vec![format!("bot == {:?}", bot.value)],
            ..Query::default()
        };
        let found = log.figures(&query).unwrap();
        assert_eq!(found.requests, bot.requests, "{}", bot.value);
    }
}

#[test]
fn log_with_more_requests_than_fit_is_not_filtered_and_still_counted() {
    let limits = Limits {
        column_bytes_max: 768 << 10,
        ..Limits::default()
    };
    let mut log = Aggregator::new(limits);
    let mut text = String::new();
    for n in 0..200_000 {
        let bytes = n * 7_919 % 65_536;
        text += &format!(
            "::1 - - [22/Jan/2021:01:47:05 +0000] \"GET /{} HTTP/1.1\" 200 {bytes}\n",
            n % 999
        );
    }
    log.handle_input(text.as_bytes());
    let summary = log.summary();
    assert_eq!((summary.requests, summary.unique_paths), (200_000, 999));
    assert!(!summary.filterable.complete && !summary.approximate);
    let Err(QueryError::ColumnsFull {
        requests,
        requests_kept,
        bytes_max,
    }) = log.figures(&Query::default())
    else {
        panic!("a query was answered from part of the requests");
    };
    assert_eq!((requests, bytes_max), (200_000, 768 << 10));
    assert!((50_000..200_000).contains(&requests_kept));
}

#[test]
fn rows_are_the_lines_that_a_query_selects() {
    let limits = Limits {
        line_bytes_sum_max: 8 << 20,
        ..Limits::default()
    };
    let mut log = Aggregator::new(limits);
    let mut expected = Vec::new();
    for n in 0..5_000u64 {
        let line = format!(
            "::{:x} - - [22/Jan/2021:01:47:05 +0000] \"GET /{n} HTTP/1.1\" 200 1",
            n % 50
        );
        if n % 50 == 7 {
            expected.push((n * 2 + 1, line.clone()));
        }
        // Every second line is not a request.
        log.handle_input(format!("{line}\r\n{}\n", if n % 3 == 0 { "odd" } else { "" }).as_bytes());
    }
    let query = Query {
        filters: vec!["address == \"::7\"".into()],
        ..Query::default()
    };
    let rows = |offset, rows_max| {
        let found = log.rows(&rows_of(&query, offset, rows_max)).unwrap();
        assert_eq!(found.total, 100);
        let rows = found.rows.into_iter();
        rows.map(|row| (row.line, row.text)).collect::<Vec<_>>()
    };
    assert_eq!(rows(0, 1_000), expected);
    assert_eq!(rows(30, 20), expected[30..50]);
    assert_eq!(
        (rows(99, 20), rows(100, 20)),
        (expected[99..].to_vec(), vec![])
    );
    let search = RowsQuery {
        containing: "get /4".to_owned(),
        ..rows_of(&query, 2, 3)
    };
    let with_text: Vec<_> = expected
        .iter()
        .filter(|(_, line)| line.contains("GET /4"))
        .collect();
    let found = log.rows(&search).unwrap();
    assert_eq!(found.total, with_text.len() as u64);
    let found = found.rows.into_iter().map(|row| (row.line, row.text));
    assert!(found.eq(with_text[2..5].iter().map(|&it| it.clone())));
    let too_many = QueryError::TooManyRows {
        rows: 1_001,
        rows_max: 1_000,
    };
    assert_eq!(log.rows(&rows_of(&query, 0, 1_001)), Err(too_many));
    assert!(log.summary().rows_kept.complete);
}

#[test]
fn rows_that_were_not_kept_are_refused() {
    let log = Aggregator::new(Limits::default());
    assert_eq!(
        log.rows(&rows_of(&Query::default(), 0, 1)),
        Err(QueryError::RowsNotKept)
    );
    let limits = Limits {
        line_bytes_sum_max: 300,
        ..Limits::default()
    };
    let mut log = Aggregator::new(limits);
    let line = b"::1 - - [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" 200 1\n";
    log.handle_input(&line.repeat(9));
    let kept = log.summary().rows_kept;
    assert!((1..9).contains(&kept.lines) && !kept.complete);
    let found = log.rows(&rows_of(&Query::default(), 0, 1)).unwrap();
    assert_eq!((found.total, found.rows[0].line), (9, 1));
    let full = QueryError::RowsFull {
        lines: kept.lines,
        bytes_max: 300,
    };
    assert_eq!(
        log.rows(&rows_of(&Query::default(), 0, 9)),
        Err(full.clone())
    );
    // The text may be in a line that was not kept.
    let search = RowsQuery {
        containing: "get".to_owned(),
        ..rows_of(&Query::default(), 0, 1)
    };
    assert_eq!(log.rows(&search), Err(full));
}
