//! The guide to adding a format, followed with the format of `tabbed.rs`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::format::{Format, FormatError};
use crate::session::{Limits, Session, SessionId};

const GUIDE: &str = include_str!("../../../../../docs/internals/adding-a-log-format.md");
const LOG: &[u8] = include_bytes!("tabbed.log");

/// Uploads a file and returns its final figures.
fn upload(log: &[u8]) -> Value {
    let now = Duration::ZERO;
    let mut session = Session::new(Limits::default(), SessionId::from_bytes([7; 16]), now);
    let file = json!({"name": "tabbed.log", "size": log.len()});
    let start = json!({"type": "start", "files": [file]});
    session.handle_text(&start.to_string(), now);
    session.handle_chunk(log, true, now);
    session.handle_text(r#"{"type":"finish"}"#, now);
    let replies = std::iter::from_fn(|| session.poll_reply(now));
    let last: Value = serde_json::from_str(&replies.last().unwrap()).unwrap();
    assert_eq!(last["final"], true, "{last}");
    last["summary"].clone()
}

#[test]
fn guide_shows_the_code_that_is_tested() {
    let code = format!("```rust\n{}```\n", include_str!("tabbed.rs"));
    assert!(GUIDE.contains(&code));
}

#[test]
fn format_of_the_guide_is_detected_and_its_requests_are_counted() {
    assert_eq!(Format::detect(LOG).unwrap().name(), "tabbed");
    let summary = upload(LOG);
    assert_eq!(summary["format"], "tabbed");
    let counts = ["requests", "unparsed", "bytes_sent"].map(|name| summary[name].as_u64());
    assert_eq!(counts, [Some(5), Some(3), Some(2_000)]);
    assert_eq!(summary["top_paths"][0], json!(["/a", 3]));
}

#[test]
fn format_of_the_guide_is_known_by_its_name() {
    assert_eq!(Format::parse("tabbed").unwrap().name(), "tabbed");
    let Err(FormatError::UnknownName { known, .. }) = Format::parse("tabs") else {
        panic!("the name must be unknown");
    };
    assert!(known.contains(&"tabbed".to_owned()));
}
