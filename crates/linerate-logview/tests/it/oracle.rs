//! Generated logs, read both by this crate and by `tests/oracle.py`, which shares no code with it.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::query::Query;
use linerate_logview::summary::Summary;
use serde_json::{Value, json};

use crate::generator::{self, Recipe};
use crate::odd_log;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle.py");

/// Returns what the oracle reports about a log for each query. Without Python, prints a note and
/// returns `None`.
fn oracle(log: &[u8], queries: &[Value]) -> Option<Vec<Value>> {
    let mut python = Command::new("python3");
    python
        .arg(SCRIPT)
        .arg(Value::from(queries).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = match python.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            linerate_testkit::skip("python3 not found");
            return None;
        }
        Err(error) => panic!("python3: {error}"),
    };
    // The script reads all of its input before it writes.
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(log).expect("the oracle reads its input");
    drop(stdin);
    let output = child.wait_with_output().expect("the oracle exits");
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).expect("the oracle prints JSON"))
}

/// Reads a log in pieces.
pub(crate) fn read(log: &[u8]) -> Aggregator {
    read_within(Limits::default(), log)
}

/// Reads a log in pieces, with other limits.
pub(crate) fn read_within(limits: Limits, log: &[u8]) -> Aggregator {
    let mut aggregator = Aggregator::new(limits);
    for piece in log.chunks(10_007) {
        aggregator.handle_input(piece);
    }
    aggregator.handle_eof();
    aggregator
}

fn figures(log: &[u8]) -> Summary {
    read(log).summary()
}

/// Compares every figure that the oracle reports.
pub(crate) fn compare(log: &[u8]) {
    let found = figures(log);
    let conditions = json!({"bucket_seconds": found.timeline.bucket_seconds});
    let Some(expected) = oracle(log, &[conditions]) else {
        return;
    };
    assert!(compare_members(found, &expected[0]) >= 20);
}

/// Compares the figures of a query with those that the oracle computes for equivalent conditions.
pub(crate) fn compare_chosen(log: &[u8], conditions: Value, filters: &[&str]) {
    let filters = filters.iter().map(|&it| it.to_owned()).collect();
    compare_queries(&read(log), log, vec![(conditions, filters)]);
}

/// Compares the figures of several queries: conditions, and filters that are equivalent to them.
pub(crate) fn compare_queries(read: &Aggregator, log: &[u8], queries: Vec<(Value, Vec<String>)>) {
    let (mut all_found, mut all_conditions) = (Vec::new(), Vec::new());
    for (mut conditions, filters) in queries {
        let asked = Query {
            from: conditions["from"].as_i64(),
            until: conditions["until"].as_i64(),
            filters,
            ..Query::default()
        };
        let found = read.figures(&asked).expect("all requests are kept");
        conditions["bucket_seconds"] = found.timeline.bucket_seconds.into();
        all_found.push(found);
        all_conditions.push(conditions);
    }
    let Some(expected) = oracle(log, &all_conditions) else {
        return;
    };
    for ((found, expected), conditions) in all_found.into_iter().zip(&expected).zip(&all_conditions)
    {
        println!("{conditions}");
        compare_members(found, expected);
    }
}

/// Compares the members that the oracle reports, and returns their number.
fn compare_members(actual: Summary, expected: &Value) -> usize {
    let mut actual = serde_json::to_value(actual).expect("summaries are JSON");
    // The oracle reports only value, requests and errors of these, but no bytes.
    for class in ["4xx", "5xx"] {
        let list = actual["error_paths"][class]
            .as_array_mut()
            .expect("error paths are a list");
        for it in list {
            *it = json!([it["value"], it["requests"], it["errors"]]);
        }
    }
    let expected = expected.as_object().expect("the oracle prints an object");
    for (figure, value) in expected {
        assert_eq!(&actual[figure], value, "{figure}");
    }
    expected.len()
}

#[test]
fn oracle_agrees_on_ordinary_lines() {
    let made = generator::combined(Recipe {
        lines: 20_000,
        addresses: 3_000,
        paths: 500,
        seed: 1,
    });
    compare(&made.text);
}

#[test]
fn oracle_agrees_on_queries() {
    let made = generator::combined(Recipe {
        lines: 20_000,
        addresses: 300,
        paths: 50,
        seed: 2,
    });
    let path = |value: &str, exclude: bool| json!({"dimension": "path", "value": value, "exclude": exclude});
    let errors = [json!({"dimension": "status", "value": "502"})];
    let queries = [
        (json!({"from": 1_611_273_900}), &[][..]),
        (json!({"from": 1_611_273_900, "until": 1_611_274_321}), &[]),
        (
            json!({"conditions": [path("/shop/items/1*", false), path("*0.html", true)]}),
            &[r#"path.startsWith("/shop/items/1") && !path.endsWith("0.html")"#],
        ),
        (
            json!({"conditions": [path("*7.html", false), path("*8.html", false),
                {"dimension": "status_class", "value": "4xx"}]}),
            &[
                r#"path.endsWith("7.html") || path.endsWith("8.html")"#,
                "status >= 400 && status < 500",
            ],
        ),
        (
            json!({"conditions": [{"dimension": "agent", "value": "*bot*"},
                {"dimension": "method", "value": "GET", "exclude": true},
                {"dimension": "address", "value": "2001:*"}]}),
            &[r#"agent.contains("bot") && method != "GET" && address.startsWith("2001:")"#],
        ),
        (
            json!({"until": 1_611_275_000, "conditions": errors}),
            &["time < 1611275000 && status == 502"],
        ),
    ];
    for (conditions, filters) in queries {
        compare_chosen(&made.text, conditions, filters);
    }
    let odd = json!({"conditions": [{"dimension": "agent", "value": "", "exclude": true}]});
    compare_chosen(&odd_log(7), odd, &[r#"agent != """#]);
}

fn odd_log(seed: u64) -> Vec<u8> {
    odd_log::odd(Recipe {
        lines: 4_000,
        addresses: 300,
        paths: 50,
        seed,
    })
}

#[test]
fn oracle_agrees_on_odd_lines() {
    for seed in 0..5 {
        let log = odd_log(seed);
        compare(&log);
        compare(&log[..log.len() - 3]);
    }
}

#[test]
fn odd_logs_contain_lines_of_every_kind() {
    let summary = figures(&odd_log(0));
    assert!(summary.requests > 500 && summary.requests_without_path > 100);
    assert!(summary.blank > 100 && summary.methods.len() >= 4);
    // All reasons except that of a line longer than 64 KiB.
    assert_eq!(summary.unparsed_reasons.len(), 6);
    assert!(summary.unparsed_reasons.values().all(|&lines| lines > 20));
}
