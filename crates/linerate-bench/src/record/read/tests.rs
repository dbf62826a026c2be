use super::*;
use crate::record::{Measurement, Outcome};

/// Returns the description of a run in which only the name of the effort matters.
pub(in crate::record) fn some_run() -> Run {
    let text = r#"{
        "format": 1, "effort": "quick", "started": "2026-01-02T03:04:05Z", "command": "linerate bench",
        "rounds": 3, "measured_ms": 100, "warm_up_ms": 25, "linerate": "0.1.0",
        "host": {
            "cpu": "", "server_cores": [0], "load_cores": [1], "cores": 2, "memory_bytes": 1,
            "kernel": "", "hypervisor": "", "governor": "", "mitigations": [], "tools": []
        },
        "scenarios": [], "contenders": []
    }"#;
    serde_json::from_str(text).unwrap()
}

pub(in crate::record) fn some_measurement(round: u32) -> Measurement {
    Measurement {
        cell: "pipeline/5B".into(),
        contender: "linerate".into(),
        round,
        outcome: Outcome::Failed {
            reason: "it crashed".into(),
        },
    }
}

fn text(lines: &[Line]) -> String {
    let lines = lines.iter();
    lines
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect()
}

fn parse(text: &str) -> Result<Record, RecordError> {
    Record::parse("a.jsonl".as_ref(), text)
}

#[test]
fn a_line_that_was_cut_off_is_left_out_wherever_it_was_cut() {
    let whole = text(&[
        Line::Run(some_run()),
        Line::Measurement(some_measurement(0)),
    ]);
    let last = text(&[Line::Measurement(some_measurement(1))]);
    for cut in 0..last.len() {
        let record = parse(&format!("{whole}{}", &last[..cut])).unwrap();
        assert_eq!(record.measurements, [some_measurement(0)], "{cut}");
    }
    let record = parse(&(whole + &last)).unwrap();
    assert_eq!(record.measurements.len(), 2);
    assert_eq!(record.run, some_run());
}

#[test]
fn a_broken_line_in_the_middle_is_named() {
    let whole = text(&[
        Line::Run(some_run()),
        Line::Measurement(some_measurement(0)),
    ]);
    let error = parse(&whole.replace("\"round\"", "\"turn\"")).unwrap_err();
    assert_eq!(error.to_string(), "a.jsonl:2: not a benchmark record line");
}

#[test]
fn what_is_no_record_is_refused() {
    let run = Line::Run(some_run());
    let old = text(std::slice::from_ref(&run)).replace("\"format\":1", "\"format\":7");
    for (text, message) in [
        (
            "",
            "a.jsonl: not a benchmark record: the first line does not describe a run",
        ),
        (
            &old,
            "a.jsonl: record format 7 is not supported; this version of linerate reads format 1",
        ),
        ("{}\n", "a.jsonl:1: not a benchmark record line"),
        (
            &text(&[run.clone(), run]),
            "a.jsonl:2: a second run begins, but a record holds only one",
        ),
    ] {
        assert_eq!(parse(text).unwrap_err().to_string(), message);
    }
}
