//! What has changed between two periods, compared with an independent count.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::aggregate::{Aggregator, Limits};
use crate::query::{ChangesQuery, Period, QueryError};
use crate::summary::Changes;

/// 2021-01-22 00:00:00 UTC.
const DAY: i64 = 1_611_273_600;
const HOUR: Period = Period {
    from: DAY,
    until: DAY + 3_600,
};
const MINUTE: Period = Period {
    from: DAY + 3_600,
    until: DAY + 3_660,
};

/// A request at a second of the day.
#[derive(Clone, Debug)]
struct Request {
    second: i64,
    address: &'static str,
    path: &'static str,
    status: u16,
}

impl Request {
    fn line(&self) -> String {
        let Self {
            second,
            address,
            path,
            status,
        } = self;
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        format!(
            "{address} - - [22/Jan/2021:{hour:02}:{minute:02}:{second:02} +0000] \
             \"GET {path} HTTP/1.1\" {status} 10 \"-\" \"curl/8\"\n"
        )
    }
}

fn log(requests: impl IntoIterator<Item = Request>) -> Aggregator {
    let mut log = Aggregator::new(Limits::default());
    for request in requests {
        log.handle_input(request.line().as_bytes());
    }
    log
}

/// Returns the values in order: field, value, requests before, requests after.
fn rows(changes: &Changes) -> Vec<(&'static str, &str, u64, u64)> {
    let values = changes.values.iter();
    values
        .map(|it| (it.field, &*it.value, it.before, it.after))
        .collect()
}

/// A request of one of four clients, every ten seconds of the first hour and the minute after it.
fn usual() -> impl Iterator<Item = Request> {
    let addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    (0..366).map(move |n| Request {
        second: n * 10,
        address: addresses[n as usize % 4],
        path: if n % 3 == 0 { "/a" } else { "/b" },
        status: 200,
    })
}

#[test]
fn what_caused_a_rise_comes_first_and_what_grew_with_everything_is_left_out() {
    let scan = (0..600).map(|n| Request {
        second: 3_600 + n % 60,
        address: "198.51.100.7",
        path: "/login",
        status: if n % 10 == 0 { 200 } else { 401 },
    });
    let log = log(usual().chain(scan));
    let changes = log.changes(&ChangesQuery::new(HOUR, MINUTE)).unwrap();
    assert_eq!(
        (changes.before.requests, changes.after.requests),
        (360, 606)
    );
    assert_eq!((changes.before.errors, changes.after.errors), (0, 540));
    assert_eq!(changes.after.bytes, 6_060);
    assert!((changes.difference - 600.0).abs() < 1e-9);
    let expected = [
        ("path", "/login", 0, 600),
        ("address", "198.51.100.7", 0, 600),
        ("status", "401", 0, 540),
    ];
    assert_eq!(rows(&changes), expected);
    assert_eq!(changes.values[2].share, Some(0.9));
    assert!(!changes.approximate);
}

#[test]
fn values_that_fell_more_than_everything_explain_a_fall() {
    let requests = |seconds: std::ops::Range<i64>, address, path| {
        seconds.map(move |second| Request {
            second,
            address,
            path,
            status: 200,
        })
    };
    let lost = requests(0..3_600, "203.0.113.9", "/feed");
    let log = log(lost.chain(requests(0..7_200, "192.0.2.1", "/a")));
    let next = Period {
        from: HOUR.until,
        until: HOUR.until + 3_600,
    };
    let changes = log.changes(&ChangesQuery::new(HOUR, next)).unwrap();
    assert_eq!(changes.difference, -3_600.0);
    let expected = [
        ("path", "/feed", 3_600, 0),
        ("address", "203.0.113.9", 3_600, 0),
    ];
    assert_eq!(rows(&changes), expected);
    assert_eq!(changes.values[0].share, Some(1.0));
}

#[test]
fn filters_and_the_number_of_values_apply() {
    let requests = (0..100).flat_map(|n| {
        ["/a", "/b"].map(|path| Request {
            second: 3_600 + n % 60,
            address: "192.0.2.1",
            path,
            status: 500,
        })
    });
    let log = log(requests);
    let mut query = ChangesQuery::new(HOUR, MINUTE);
    query.filters = vec!["path == \"/a\"".to_owned()];
    query.top_max = 2;
    let changes = log.changes(&query).unwrap();
    assert_eq!(changes.after.requests, 100);
    let fields: Vec<_> = changes.values.iter().map(|it| it.field).collect();
    assert_eq!(fields, ["path", "address"]);
    query.top_max = 1_001;
    assert!(matches!(
        log.changes(&query),
        Err(QueryError::TopTooLong { .. })
    ));
    let empty = ChangesQuery::new(MINUTE, Period { from: 5, until: 5 });
    let expected = QueryError::EmptyPeriod { from: 5, until: 5 };
    assert_eq!(log.changes(&empty), Err(expected));
}

#[test]
fn periods_without_requests_have_no_changes() {
    let log = log(usual());
    let (before, after) = (
        Period { from: 0, until: 60 },
        Period {
            from: 60,
            until: 99,
        },
    );
    let changes = log.changes(&ChangesQuery::new(before, after)).unwrap();
    assert_eq!((changes.difference, rows(&changes)), (0.0, vec![]));
    let extreme = Period {
        from: i64::MIN,
        until: i64::MAX,
    };
    assert!(log.changes(&ChangesQuery::new(extreme, extreme)).is_ok());
}

proptest! {
    #[test]
    fn counts_are_those_of_the_requests(
        requests in prop::collection::vec(
            (
                0..7_200_i64,
                prop::sample::select(&["192.0.2.1", "192.0.2.2", "192.0.2.3"]),
                prop::sample::select(&["/", "/a", "/b"]),
                prop::sample::select(&[200_u16, 404, 500]),
            ),
            0..300,
        ),
        cut in 1..7_200_i64,
    ) {
        let requests: Vec<_> = requests
            .into_iter()
            .map(|(second, address, path, status)| Request { second, address, path, status })
            .collect();
        let mut expected: BTreeMap<(&str, String), (u64, u64)> = BTreeMap::new();
        for it in &requests {
            let status = it.status.to_string();
            let fields = [("address", it.address), ("path", it.path), ("status", &*status)];
            for (field, value) in fields {
                let pair = expected.entry((field, value.to_owned())).or_default();
                match it.second < cut {
                    true => pair.0 += 1,
                    false => pair.1 += 1,
                }
            }
        }
        let before = Period { from: DAY, until: DAY + cut };
        let after = Period { from: DAY + cut, until: DAY + 7_200 };
        let log = log(requests);
        let changes = log.changes(&ChangesQuery::new(before, after)).unwrap();
        for change in &changes.values {
            if let Some(pair) = expected.get(&(change.field, change.value.clone())) {
                prop_assert_eq!(*pair, (change.before, change.after));
            } else {
                prop_assert!(matches!(change.field, "agent" | "bot" | "method" | "referrer" | "host"));
            }
        }
    }
}
