//! A query has the figures of a log that holds nothing but the lines it chooses.

use proptest::prelude::*;

use crate::aggregate::{Aggregator, Limits, bots};
use crate::query::{Condition, Dimension, Query, QueryError};
use crate::summary::{Filterable, Summary};

/// A request of which every part is one of a few.
#[derive(Clone, Debug)]
struct Request {
    address: &'static str,
    time: i64,
    method: &'static str,
    path: &'static str,
    status: u16,
    bytes: u64,
    referrer: &'static str,
    agent: &'static str,
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
        } = self;
        let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
        format!(
            "{address} - - [22/Jan/2021:{hour:02}:{minute:02}:{second:02} +0000] \
             \"{method} {path} HTTP/1.1\" {status} {bytes} \"{referrer}\" \"{agent}\"\n"
        )
    }

    fn value(&self, dimension: Dimension) -> String {
        let text = match dimension {
            Dimension::Address => self.address,
            Dimension::Agent => self.agent,
            Dimension::Bot => return bots::name(self.agent.as_bytes()).unwrap_or_default(),
            // Which country an address is in is the business of other tests.
            Dimension::Country => "",
            Dimension::Host => "-",
            Dimension::Method => self.method,
            Dimension::Path => self.path,
            Dimension::Referrer => self.referrer,
            Dimension::Status => return format!("{:03}", self.status),
            Dimension::StatusClass => return format!("{}xx", self.status / 100),
        };
        text.strip_prefix('-').unwrap_or(text).to_string()
    }

    /// Says whether a query chooses the request, one condition after the other.
    fn is_chosen(&self, query: &Query) -> bool {
        let time = DAY + self.time;
        let dimensions = query.conditions.iter().map(|it| it.dimension);
        query.from.is_none_or(|from| time >= from)
            && query.until.is_none_or(|until| time < until)
            && dimensions.clone().all(|dimension| {
                let value = self.value(dimension);
                let matches = |exclude: bool| {
                    let of = |it: &&Condition| it.dimension == dimension && it.exclude == exclude;
                    let conditions: Vec<_> = query.conditions.iter().filter(of).collect();
                    let any = conditions.iter().any(|it| glob(&it.value, &value));
                    (conditions.len(), any)
                };
                let (included, any_included) = matches(false);
                (included == 0 || any_included) && !matches(true).1
            })
    }
}

fn glob(pattern: &str, value: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(tail), None) => value.ends_with(tail),
        (None, Some(head)) => value.starts_with(head),
        (None, None) => value == pattern,
        (Some(_), Some(_)) => value.contains(pattern.trim_matches('*')),
    }
}

/// The start of the day of all requests.
const DAY: i64 = 1_611_273_600;
const ADDRESSES: [&str; 3] = ["192.0.2.7", "2001:db8::7", "192.0.2.70"];
const PATHS: [&str; 4] = ["/", "/a", "/a/b", "/b"];
const AGENTS: [&str; 4] = ["-", "Firefox", "Googlebot/2.1", "xbot"];

fn any_request() -> impl Strategy<Value = Request> {
    (
        prop::sample::select(&ADDRESSES[..]),
        0i64..86_400,
        prop::sample::select(vec!["GET", "POST"]),
        prop::sample::select(&PATHS[..]),
        prop::sample::select(vec![200u16, 301, 404, 502]),
        0u64..1_000,
        prop::sample::select(vec!["-", "https://a.example/"]),
        prop::sample::select(&AGENTS[..]),
    )
        .prop_map(
            |(address, time, method, path, status, bytes, referrer, agent)| Request {
                address,
                time,
                method,
                path,
                status,
                bytes,
                referrer,
                agent,
            },
        )
}

fn any_condition() -> impl Strategy<Value = Condition> {
    let values = prop_oneof![
        (
            Just(Dimension::Address),
            prop::sample::select(vec!["192.0.2.7", "192*", "x"])
        ),
        (
            Just(Dimension::Agent),
            prop::sample::select(vec!["", "*bot*", "Firefox", "*"])
        ),
        (
            Just(Dimension::Bot),
            prop::sample::select(vec!["", "Googlebot", "x*", "*"])
        ),
        (Just(Dimension::Host), prop::sample::select(vec!["", "x"])),
        (
            Just(Dimension::Method),
            prop::sample::select(vec!["GET", "P*"])
        ),
        (
            Just(Dimension::Path),
            prop::sample::select(vec!["/", "/a*", "*b", "/a"])
        ),
        (
            Just(Dimension::Referrer),
            prop::sample::select(vec!["", "https*"])
        ),
        (
            Just(Dimension::Status),
            prop::sample::select(vec!["404", "2*"])
        ),
        (
            Just(Dimension::StatusClass),
            prop::sample::select(vec!["5xx", "4xx"])
        ),
    ];
    (values, any::<bool>()).prop_map(|((dimension, value), exclude)| Condition {
        dimension,
        value: value.into(),
        exclude,
    })
}

fn any_query() -> impl Strategy<Value = Query> {
    (
        prop::option::of(DAY..DAY + 86_400),
        prop::option::of(DAY..DAY + 86_400),
        prop::collection::vec(any_condition(), 0..4),
    )
        .prop_map(|(from, until, conditions)| Query {
            from,
            until,
            conditions,
            ..Query::default()
        })
}

fn log<'a>(requests: impl IntoIterator<Item = &'a Request>) -> Aggregator {
    let mut log = Aggregator::new(Limits::default());
    for request in requests {
        log.handle_input(request.line().as_bytes());
    }
    log
}

/// Takes out what a query says about the whole log.
fn of_chosen(mut summary: Summary) -> Summary {
    (summary.lines, summary.bytes_read) = (0, 0);
    summary.filterable = Filterable::default();
    summary
}

proptest! {
    #[test]
    fn query_has_the_figures_of_the_lines_that_it_chooses(
        requests in prop::collection::vec(any_request(), 0..200),
        query in any_query(),
    ) {
        let chosen = log(requests.iter().filter(|it| it.is_chosen(&query)));
        let mut found = log(&requests).figures(&query).unwrap();
        let mut expected = chosen.summary();
        if query.from.is_some() || query.until.is_some() {
            // Buckets may be shorter than a minute.
            let sum = |summary: &Summary| -> u64 { summary.timeline.bytes.iter().sum() };
            prop_assert_eq!(sum(&found), sum(&expected));
            found.timeline = expected.timeline.clone();
        }
        expected = of_chosen(expected);
        prop_assert_eq!(of_chosen(found), expected);
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
            conditions: vec![Condition {
                dimension: Dimension::Bot,
                value: bot.value.clone(),
                exclude: false,
            }],
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
        panic!("a query was answered from a part");
    };
    assert_eq!((requests, bytes_max), (200_000, 768 << 10));
    assert!((50_000..200_000).contains(&requests_kept));
}

#[test]
fn rows_are_the_lines_that_a_query_chooses() {
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
        // Every second line is no request.
        log.handle_input(format!("{line}\r\n{}\n", if n % 3 == 0 { "odd" } else { "" }).as_bytes());
    }
    let query = Query {
        conditions: vec![Condition {
            dimension: Dimension::Address,
            value: "::7".into(),
            exclude: false,
        }],
        ..Query::default()
    };
    let rows = |offset, rows_max| {
        let found = log.rows(&query, offset, rows_max).unwrap();
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
    let too_many = QueryError::TooManyRows {
        rows: 1_001,
        rows_max: 1_000,
    };
    assert_eq!(log.rows(&query, 0, 1_001), Err(too_many));
    assert!(log.summary().rows_kept.complete);
}

#[test]
fn rows_that_were_not_kept_are_refused() {
    let log = log(&[]);
    assert_eq!(
        log.rows(&Query::default(), 0, 1),
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
    let found = log.rows(&Query::default(), 0, 1).unwrap();
    assert_eq!((found.total, found.rows[0].line), (9, 1));
    let full = QueryError::RowsFull {
        lines: kept.lines,
        bytes_max: 300,
    };
    assert_eq!(log.rows(&Query::default(), 0, 9), Err(full));
}
