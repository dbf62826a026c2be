//! Logs that the server reads, and the clients that view them.

use std::time::Duration;

use serde_json::Value;

use super::flow::{LINE, gzip};
use crate::session::{Followed, Limits, Outcome, SessionError, SessionId, Viewed, Viewer};

const JSON: &[u8] = br#"{"ts":1611280025,"status":200,"request":{"method":"GET","uri":"/a"}}"#;

fn summary(log: &Followed) -> Value {
    let mut snapshot: Value = serde_json::from_str(&log.snapshot()).unwrap();
    assert_eq!(
        (&snapshot["type"], &snapshot["final"]),
        (&"snapshot".into(), &false.into())
    );
    snapshot["summary"].take()
}

fn polled(viewer: &mut Viewer, log: &Followed) -> Option<String> {
    viewer.poll_reply(Viewed::Followed(log), Duration::ZERO)
}

/// Creates a viewer that has already received `ready`.
fn viewer(log: &Followed) -> Viewer {
    let mut viewer = Viewer::new(Limits::default(), SessionId::from_bytes([0x5A; 16]));
    let ready: Value = serde_json::from_str(&polled(&mut viewer, log).unwrap()).unwrap();
    assert_eq!(
        (&ready["type"], &ready["window_bytes"]),
        (&"ready".into(), &0.into())
    );
    assert_eq!(polled(&mut viewer, log), None);
    viewer
}

fn reply(viewer: &mut Viewer, log: &Followed) -> Value {
    serde_json::from_str(&polled(viewer, log).unwrap()).unwrap()
}

#[test]
fn queries_use_the_newest_requests_once_not_all_fit() {
    let mut limits = Limits::default();
    limits.aggregate.column_bytes_max = 512 << 10;
    let mut log = Followed::new(limits);
    for n in 0..200_000 {
        let (minute, second, bytes) = (n / 60 % 60, n % 60, n * 7_919 % 65_536);
        let hour = n / 3_600 % 24;
        let line = format!(
            "::1 - - [22/Jan/2021:{hour:02}:{minute:02}:{second:02} +0000] \"GET / HTTP/1.1\" 200 {bytes}\n"
        );
        log.handle_input(line.as_bytes()).unwrap();
    }
    let summary = summary(&log);
    let kept = &summary["filterable"];
    assert_eq!(
        (&summary["requests"], &kept["complete"]),
        (&200_000.into(), &false.into())
    );
    assert!(kept["since"].is_i64());
    let mut viewer = viewer(&log);
    viewer.handle_text(r#"{"type":"query","seq":1,"query":{}}"#);
    let answer = reply(&mut viewer, &log);
    assert_eq!(answer["summary"]["requests"], kept["requests"]);
}

#[test]
fn replacing_file_has_its_own_format() {
    let mut log = Followed::new(Limits::default());
    log.handle_input(&LINE[..LINE.len() - 1]).unwrap();
    assert_eq!(summary(&log)["requests"], 0, "the line has no end yet");
    log.handle_eof().unwrap();
    log.handle_input(JSON).unwrap();
    log.handle_input(b"\n").unwrap();
    let summary = summary(&log);
    assert_eq!(
        (&summary["requests"], &summary["unparsed"]),
        (&2.into(), &0.into())
    );
}

#[test]
fn damaged_file_is_skipped_to_its_end() {
    let mut log = Followed::new(Limits::default());
    let mut file = gzip(LINE);
    file.truncate(10);
    log.handle_input(&file).unwrap();
    log.handle_input(&[0xFF; 100]).unwrap_err();
    log.handle_input(LINE).unwrap();
    log.handle_eof().unwrap();
    log.handle_input(LINE).unwrap();
    assert_eq!(summary(&log)["requests"], 1);
}

#[test]
fn viewer_may_query_and_leave() {
    let mut log = Followed::new(Limits::default());
    log.handle_input(LINE).unwrap();
    let mut viewer = viewer(&log);
    viewer.handle_text(r#"{"type":"query","seq":3,"query":{}}"#);
    let figures = reply(&mut viewer, &log);
    assert_eq!(
        (&figures["type"], &figures["seq"]),
        (&"figures".into(), &3.into())
    );
    assert_eq!(figures["summary"]["requests"], 1);
    assert_eq!(viewer.outcome(), None);
    viewer.handle_text(r#"{"type":"cancel"}"#);
    assert_eq!(viewer.outcome(), Some(&Outcome::Cancelled));
    assert_eq!(polled(&mut viewer, &log), None);
}

#[test]
fn viewer_that_sends_anything_else_is_refused() {
    let log = Followed::new(Limits::default());
    for text in [
        "?",
        r#"{"type":"finish"}"#,
        r#"{"type":"follow","name":"a"}"#,
        r#"{"type":"start","files":[]}"#,
    ] {
        let mut viewer = viewer(&log);
        viewer.handle_text(text);
        assert_eq!(reply(&mut viewer, &log)["code"], "protocol");
        viewer.handle_text(r#"{"type":"cancel"}"#);
        assert!(matches!(viewer.outcome(), Some(Outcome::Failed(_))));
    }
    let mut viewer = viewer(&log);
    viewer.handle_binary();
    assert_eq!(
        viewer.outcome(),
        Some(&Outcome::Failed(SessionError::NotStarted))
    );
}
