//! Uploads that their client stops before all bytes were sent.

use serde_json::json;

use super::flow::{Client, LINE, gzip, start, types};
use crate::session::{Limits, Outcome, SessionError};

const STOP: &str = r#"{"type":"stop"}"#;

#[test]
fn figures_of_a_stopped_upload_cover_its_whole_lines_and_can_be_queried() {
    let mut client = Client::started(Limits::default(), 1 << 30);
    client.send(&[&LINE.repeat(1_000)[..], &LINE[..30]].concat());
    let replies = client.say(STOP);
    assert_eq!(types(&replies), ["snapshot"]);
    assert_eq!(replies[0]["final"], true);
    let summary = &replies[0]["summary"];
    assert_eq!(
        (&summary["requests"], &summary["unparsed"]),
        (&json!(1_000), &json!(0))
    );
    for (filter, requests) in [("status == 200", 1_000), ("status == 404", 0)] {
        let query = json!({"type": "query", "seq": 1, "query": {"filters": [filter]}});
        let answer = client.say(&query.to_string());
        assert_eq!(answer[0]["summary"]["requests"], requests, "{filter}");
    }
}

#[test]
fn few_lines_that_wait_for_their_format_are_counted_and_need_not_be_a_log() {
    let mut client = Client::started(Limits::default(), 1 << 20);
    client.send(b"not a request\n");
    let replies = client.say(STOP);
    assert_eq!(replies[0]["summary"]["unparsed"], 1);
}

#[test]
fn compressed_and_later_files_may_be_missing() {
    let bytes = gzip(&LINE.repeat(50_000));
    let size = Some(bytes.len() as u64);
    let mut client = Client::started_with(Limits::default(), &[size, size]);
    client.send(&bytes);
    client.send(&bytes[..bytes.len() / 2]);
    let summary = &client.say(STOP)[0]["summary"];
    let requests = summary["requests"].as_u64().unwrap();
    assert!((50_001..100_000).contains(&requests), "{requests}");
    assert_eq!(summary["unparsed"], 0);
}

#[test]
fn stop_may_be_repeated_and_ends_the_bytes() {
    let mut early = Client::new(Limits::default());
    early.say(STOP);
    let failed = Outcome::Failed(SessionError::NotStarted);
    assert_eq!(early.session.outcome(), Some(&failed));

    let mut client = Client::new(Limits::default());
    client.say(&start(&[Some(1 << 20)]));
    for end in [STOP, STOP, r#"{"type":"finish"}"#] {
        assert_eq!(client.say(end)[0]["final"], true, "{end}");
    }
    client.send(LINE);
    let failed = Outcome::Failed(SessionError::AfterFinish);
    assert_eq!(client.session.outcome(), Some(&failed));
}
