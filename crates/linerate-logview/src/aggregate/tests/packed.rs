//! A packed log answers queries as the log itself does.

use proptest::prelude::*;

use super::queries::{any_query, any_request, log, of_chosen};
use crate::aggregate::{Aggregator, Detail, Limits, UnpackError};
use crate::query::{Field, ListQuery, Query, QueryError};
use crate::session;

const EXACT: Detail = Detail {
    seconds: 1,
    values_max: usize::MAX,
    rounds_numbers: false,
};

/// Returns a log of `count` requests, in which request `n` has the path `/n` `n` times.
fn staircase(count: usize) -> Aggregator {
    let mut log = Aggregator::new(Limits::default());
    for n in 1..=count {
        let line = format!(
            "192.0.2.{n} - - [22/Jan/2021:01:47:{:02} +0000] \"GET /{n} HTTP/1.1\" 200 {n} \
             \"-\" \"Firefox\"\n",
            n % 60
        );
        log.handle_input(line.repeat(n).as_bytes());
    }
    log
}

fn query(filter: &str) -> Query {
    Query {
        filters: vec![filter.to_owned()],
        ..Query::default()
    }
}

/// Asks for everything that a hostile log could break.
fn ask_everything(log: &Aggregator) {
    for filters in [&[][..], &["bot != \"\" || status_class == \"4xx\""]] {
        let filters = filters.iter().map(|&it| it.to_owned()).collect();
        let query = Query {
            filters,
            ..Query::default()
        };
        let _ = log.figures(&query);
        let _ = log.latency(&query);
    }
    for field in Field::LISTED {
        let _ = log.values(&ListQuery::new(field));
    }
}

proptest! {
    #[test]
    fn a_packed_log_has_the_figures_of_the_log(
        requests in prop::collection::vec(any_request(), 0..200),
        query in any_query(),
    ) {
        let whole = log(&requests);
        let packed = Aggregator::unpack(&whole.pack(EXACT).unwrap()).unwrap();
        match (packed.figures(&query), whole.figures(&query)) {
            (Ok(mut found), Ok(expected)) => {
                found.format.clone_from(&expected.format);
                prop_assert_eq!(of_chosen(found), of_chosen(expected));
            }
            (found, expected) => prop_assert_eq!(found, expected),
        }
    }

    #[test]
    fn bytes_that_were_not_packed_never_panic(bytes: Vec<u8>) {
        prop_assert!(Aggregator::unpack(&bytes).is_err());
        let _ = Aggregator::unpack(&[b"lrpack1\n", &*bytes].concat());
    }

    #[test]
    fn damaged_bytes_never_panic(
        requests in prop::collection::vec(any_request(), 1..20),
        at: prop::sample::Index,
        byte: u8,
        end: prop::sample::Index,
    ) {
        let mut bytes = log(&requests).pack(EXACT).unwrap();
        let end = end.index(bytes.len());
        prop_assert!(Aggregator::unpack(&bytes[..end]).is_err());
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(log) = Aggregator::unpack(&bytes) {
            ask_everything(&log);
        }
    }
}

#[test]
fn less_detail_keeps_the_totals_and_the_frequent_values() {
    let whole = staircase(100);
    let detail = Detail {
        seconds: 60,
        values_max: 10,
        rounds_numbers: false,
    };
    let packed = Aggregator::unpack(&whole.pack(detail).unwrap()).unwrap();
    let all = packed.figures(&Query::default()).unwrap();
    let expected = whole.summary();
    assert_eq!(all.requests, expected.requests);
    assert_eq!(all.bytes_sent, expected.bytes_sent);
    assert_eq!(all.top_paths[..10], expected.top_paths[..10]);
    assert_eq!((all.first_time, all.last_time), (Some(DAY), Some(DAY)));
    assert!(!all.paths_exact);

    let frequent = query("path == \"/91\"");
    assert_eq!(packed.figures(&frequent).unwrap().requests, 91);
    for filter in ["path == \"/90\"", "path.startsWith(\"/9\")"] {
        let error = packed.figures(&query(filter)).unwrap_err();
        assert!(matches!(
            error,
            QueryError::NotToldApart { values_max: 10, .. }
        ));
    }
}

#[test]
fn rounded_numbers_keep_the_sums_of_similar_requests() {
    let mut whole = log(&[]);
    for (status, bytes, duration) in [(200, 5, "0.001"), (200, 8, "0.999"), (404, 7, "-")] {
        let line = format!(
            "::1 [22/Jan/2021:01:47:05 +0000] \"GET / HTTP/1.1\" {status} {bytes} \"-\" \"-\" \
             {duration}\n"
        );
        whole.handle_input(line.as_bytes());
    }
    let detail = Detail {
        rounds_numbers: true,
        ..EXACT
    };
    let packed = Aggregator::unpack(&whole.pack(detail).unwrap()).unwrap();
    let sizes = |bytes| {
        let size = query(&format!("bytes_sent == {bytes}"));
        packed.figures(&size).unwrap().requests
    };
    assert_eq!([5, 6, 7, 8].map(sizes), [0, 1, 2, 0]);
    let found = packed.figures(&query("status == 200")).unwrap();
    assert_eq!((found.requests, found.bytes_sent), (2, 13));
    // 999,000 µs have 20 bits, of which the highest five are kept.
    assert_eq!(found.latency.unwrap().max_us, 999_000 >> 15 << 15);
}

/// 22 January 2021, 01:47 UTC.
const DAY: i64 = 1_611_280_020;

#[test]
fn a_log_that_cannot_be_queried_is_not_packed() {
    let mut log = Aggregator::new(Limits {
        column_bytes_max: 1,
        ..Limits::default()
    });
    log.handle_input(&super::cuts::ODD_LOG.repeat(1_000));
    assert!(log.pack(EXACT).is_err());
}

#[test]
fn a_packed_log_answers_messages_of_the_protocol() {
    let packed = staircase(5).pack(EXACT).unwrap();
    let log = Aggregator::unpack(&packed).unwrap();
    let ask = |message: &str| {
        let answer = session::answer(&log, message)?;
        Some(serde_json::from_str::<serde_json::Value>(&answer).unwrap())
    };
    let question = r#"{"type":"query","seq":7,"query":{"filters":["path == \"/4\""]}}"#;
    let answer = ask(question).unwrap();
    assert_eq!(
        (&answer["type"], &answer["seq"]),
        (&"figures".into(), &7.into())
    );
    assert_eq!(answer["summary"]["requests"], 4);
    let wrong = r#"{"type":"query","seq":8,"query":{"filters":["path = 1"]}}"#;
    assert_eq!(ask(wrong).unwrap()["code"], "bad_filter");
    let rows = r#"{"type":"rows","seq":9,"query":{},"offset":0,"limit":9}"#;
    assert_eq!(ask(rows).unwrap()["code"], "rows_not_kept");
    for other in [r#"{"type":"drop","seq":7}"#, r#"{"type":"stop"}"#, "{"] {
        assert_eq!(ask(other), None);
    }
}

#[test]
fn other_bytes_are_refused() {
    let refused = |bytes: &[u8]| Aggregator::unpack(bytes).unwrap_err();
    assert_eq!(refused(b""), UnpackError::Version);
    assert_eq!(refused(b"lrpack2\n"), UnpackError::Version);
    assert_eq!(refused(b"lrpack1\n"), UnpackError::Truncated);
    let mut longer = staircase(2).pack(EXACT).unwrap();
    longer.push(0);
    assert_eq!(refused(&longer), UnpackError::Malformed { what: "the end" });
}
