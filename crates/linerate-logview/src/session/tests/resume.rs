//! Sessions that outlive their connections.

use proptest::prelude::*;
use serde_json::json;

use super::flow::{Client, LINE, gzip, start, types};
use crate::session::{Limits, Lookup, Outcome, SessionError, SessionId};

const RESUME: &str = r#"{"type":"resume","id":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"}"#;

/// Resumes the session over a new connection, and returns how many bytes the server has.
fn resumed(client: &mut Client) -> usize {
    client.session.handle_resume(client.now);
    let replies = client.replies();
    assert_eq!(replies[0]["type"], "ready", "{replies:?}");
    assert_eq!(replies[0]["id"], "5a".repeat(16));
    usize::try_from(replies[0]["bytes"].as_u64().unwrap()).unwrap()
}

#[test]
fn reconnecting_client_gets_the_progress_and_the_figures() {
    let mut client = Client::started(Limits::default(), 2 * LINE.len() as u64);
    client.session.handle_chunk(LINE, false, client.now);
    client.session.handle_resume(client.now);
    let replies = client.replies();
    assert_eq!(types(&replies), ["ready", "snapshot"]);
    assert_eq!(replies[0]["bytes"], LINE.len());
    assert_eq!(
        (&replies[1]["final"], &replies[1]["summary"]["requests"]),
        (&json!(false), &json!(1))
    );
    client.send(LINE);
    assert_eq!(client.finish()[0]["summary"]["requests"], 2);
}

#[test]
fn client_that_lost_the_last_figures_gets_them_again() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    client
        .session
        .handle_text(r#"{"type":"finish"}"#, client.now);
    client.session.handle_resume(client.now);
    let replies = client.replies();
    assert_eq!(types(&replies), ["ready", "snapshot"]);
    assert_eq!(replies[0]["bytes"], LINE.len());
    assert_eq!(replies[1]["final"], true);
}

#[test]
fn reconnecting_client_has_the_whole_window() {
    let limits = Limits {
        window_bytes: LINE.len() as u64,
        ..Limits::default()
    };
    let mut client = Client::started(limits, 2 * LINE.len() as u64);
    client.session.handle_chunk(LINE, true, client.now);
    assert_eq!(resumed(&mut client), LINE.len());
    client.send(LINE);
    assert_eq!(client.session.outcome(), None);
}

#[test]
fn requests_to_resume_or_follow_are_left_to_the_caller() {
    let mut client = Client::new(Limits::default());
    assert!(client.say(RESUME).is_empty());
    let id = SessionId::from_bytes([0x5A; 16]);
    assert_eq!(client.session.take_lookup(), Some(Lookup::Resume(id)));
    client.session.refuse(SessionError::UnknownSession);
    assert_eq!(client.replies()[0]["code"], "unknown_session");
    assert!(client.session.is_finished());

    let mut client = Client::new(Limits::default());
    client.say(r#"{"type":"follow","name":"access.log"}"#);
    assert_eq!(
        client.session.take_lookup(),
        Some(Lookup::Follow("access.log".into()))
    );
    assert_eq!(client.session.take_lookup(), None);
}

#[test]
fn request_to_resume_or_follow_replaces_a_start() {
    for second in [RESUME, &start(&[Some(1)])] {
        let mut client = Client::new(Limits::default());
        client.say(RESUME);
        client.say(second);
        assert_eq!(
            client.session.outcome(),
            Some(&Outcome::Failed(SessionError::SecondStart))
        );
        assert_eq!(client.session.take_lookup(), None);
    }
    let mut client = Client::started(Limits::default(), 1);
    client.say(RESUME);
    assert_eq!(
        client.session.outcome(),
        Some(&Outcome::Failed(SessionError::SecondStart))
    );
}

/// Uploads files over a series of connections and returns the last figures. For each cut, the
/// connection is lost after the given number of bytes.
fn uploaded(files: &[&[u8]], cuts: &[(usize, usize)]) -> serde_json::Value {
    let sizes: Vec<_> = files.iter().map(|file| Some(file.len() as u64)).collect();
    let mut client = Client::started_with(Limits::default(), &sizes);
    let bytes = files.concat();
    let mut from = 0;
    for (taken, lost) in cuts {
        let to = bytes.len().min(from + taken);
        client
            .session
            .handle_chunk(&bytes[from..to], lost % 2 == 0, client.now);
        if lost % 3 == 0 {
            client.replies();
        }
        from = resumed(&mut client);
        assert_eq!(from, to);
    }
    client.send(&bytes[from..]);
    client.finish().pop().unwrap()
}

proptest! {
    #[test]
    fn lost_connections_at_any_byte_do_not_change_figures(
        cuts in prop::collection::vec((0usize..900, 0usize..6), 0..30),
    ) {
        let odd = b"\x16\x03\x01\r\n\nnot a request\n";
        let torn = [&LINE.repeat(20)[..], odd, &LINE[..LINE.len() - 1]].concat();
        let files = [&torn[..], b"", LINE, &torn];
        prop_assert_eq!(uploaded(&files, &cuts), uploaded(&files, &[]));
    }

    #[test]
    fn lost_connections_within_compressed_files_do_not_change_figures(
        cuts in prop::collection::vec((0usize..90, 0usize..6), 0..30),
    ) {
        let numbered = |i: usize| format!("192.0.2.{} {}", i % 256, std::str::from_utf8(&LINE[10..]).unwrap());
        let log: String = (0..500).map(numbered).collect();
        let compressed = gzip(log.as_bytes());
        let files = [&compressed[..], LINE, &compressed];
        prop_assert_eq!(uploaded(&files, &cuts), uploaded(&files, &[]));
    }
}
