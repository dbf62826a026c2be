//! The record of `make chaos`: one line of JSON per subscriber.

use std::{env, fs::OpenOptions, io::Write, time::Duration};

use serde_json::json;

use super::{
    fault::Row,
    servers::Kind,
    stage::{Judged, Outcome},
};

/// The environment variable with the file that lines are appended to. If it is set, faults last
/// longer.
const VARIABLE: &str = "LINERATE_CHAOS";

/// Returns whether a record is taken, as in `make chaos`.
pub(crate) fn is_taken() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Appends the outcome of a fault if a record is taken.
pub(crate) fn append(row: &Row, kind: Kind, outage: Duration, outcome: &Outcome) {
    let Some(file) = env::var_os(VARIABLE) else {
        return;
    };
    let lines = outcome.judged.iter();
    let lines: String = lines
        .map(|judged| line(row, kind, outage, outcome, judged) + "\n")
        .collect();
    let mut options = OpenOptions::new();
    let mut file = options.create(true).append(true).open(file).unwrap();
    // Write everything at once, because other processes also append to the file.
    file.write_all(lines.as_bytes()).unwrap();
}

/// Returns the line of one subscriber.
pub(crate) fn line(
    row: &Row,
    kind: Kind,
    outage: Duration,
    outcome: &Outcome,
    judged: &Judged,
) -> String {
    let (channel, _) = judged.channel.split_once(':').expect("a namespace");
    let milliseconds = |duration: Duration| duration.as_millis() as u64;
    let [acknowledged, unknown] = judged.published;
    let verdict = judged.verdict;
    json!({
        "fault": row.name,
        "broker": format!("{kind:?}"),
        "channel": channel,
        "client": judged.protocol.name(),
        "bystander": judged.is_bystander,
        "outage_s": outage.as_secs(),
        "acknowledged": acknowledged,
        "unknown": unknown,
        "received": verdict.received,
        "lost": verdict.lost,
        "duplicated": verdict.duplicated,
        "reordered": verdict.reordered,
        "gaps": verdict.gaps,
        "missing_in_gaps": verdict.announced,
        "red_after_ms": outcome.red.map(milliseconds),
        "green_after_ms": outcome.green.map(milliseconds),
    })
    .to_string()
}
