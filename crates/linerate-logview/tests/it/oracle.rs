//! Generated logs, read by us and by `tests/oracle.py`, which shares nothing with us.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use linerate_logview::aggregate::{Aggregator, Limits};
use linerate_logview::summary::Summary;
use serde_json::Value;

use crate::generator::{self, Recipe};
use crate::odd_log;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oracle.py");

/// Returns what the oracle says about a log, or `None` after a word about it without Python.
fn oracle(log: &[u8]) -> Option<Value> {
    let mut python = Command::new("python3");
    python
        .arg(SCRIPT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = match python.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("SKIPPED: there is no python3");
            return None;
        }
        Err(error) => panic!("python3: {error}"),
    };
    // The script reads all of its input before it writes.
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(log).expect("the oracle reads it");
    drop(stdin);
    let output = child.wait_with_output().expect("the oracle ends");
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).expect("the oracle prints JSON"))
}

/// Reads a log in pieces.
fn figures(log: &[u8]) -> Summary {
    let mut aggregator = Aggregator::new(Limits::default());
    for piece in log.chunks(10_007) {
        aggregator.handle_input(piece);
    }
    aggregator.handle_eof();
    aggregator.summary()
}

/// Compares every figure that the oracle knows.
fn compare(log: &[u8]) {
    let Some(expected) = oracle(log) else { return };
    let actual = serde_json::to_value(figures(log)).expect("summaries are JSON");
    let expected = expected.as_object().expect("the oracle prints an object");
    assert!(expected.len() >= 15);
    for (figure, value) in expected {
        if figure == "timeline" {
            compare_members(&actual[figure], value);
        } else {
            assert_eq!(&actual[figure], value, "{figure}");
        }
    }
}

/// Compares the members that the oracle knows.
fn compare_members(actual: &Value, expected: &Value) {
    for (member, value) in expected.as_object().expect("it is an object") {
        assert_eq!(&actual[member], value, "{member}");
    }
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
fn odd_logs_hold_lines_of_every_kind() {
    let summary = figures(&odd_log(0));
    assert!(summary.requests > 500 && summary.requests_without_path > 100);
    assert!(summary.blank > 100 && summary.methods.len() >= 4);
    // All reasons but that of a line beyond 64 KiB.
    assert_eq!(summary.unparsed_reasons.len(), 6);
    assert!(summary.unparsed_reasons.values().all(|&lines| lines > 20));
}
