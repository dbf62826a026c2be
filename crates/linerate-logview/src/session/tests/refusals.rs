//! Rejected uploads, each with its code and a message that names the values.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::flow::{Client, LINE, gzip, start, types};
use crate::session::{Limits, Outcome, SessionError};

/// Checks that the replies end the session with an error, and returns its code and message.
fn error(client: &Client, replies: &[Value]) -> (String, String) {
    let last = replies.last().expect("an error is sent");
    assert_eq!(last["type"], "error", "{replies:?}");
    assert!(client.session.is_finished());
    assert!(matches!(client.session.outcome(), Some(Outcome::Failed(_))));
    let text = |key: &str| last[key].as_str().unwrap().to_string();
    (text("code"), text("message"))
}

/// Uploads a file in messages of 64 KiB until the session ends, and returns its error.
fn refused(file: &[u8]) -> (String, String) {
    let mut client = Client::started(Limits::default(), file.len() as u64);
    for piece in file.chunks(64 << 10) {
        let replies = client.send(piece);
        if client.session.is_finished() {
            return error(&client, &replies);
        }
    }
    let replies = client.finish();
    error(&client, &replies)
}

fn accepted(file: &[u8]) {
    let mut client = Client::started(Limits::default(), file.len() as u64);
    client.send(file);
    assert_eq!(types(&client.finish()), ["snapshot"]);
}

#[test]
fn file_without_a_request_is_not_a_log() {
    let (code, message) = refused(b"Dear diary,\ntoday\n");
    assert_eq!(code, "not_a_log");
    assert!(message.contains("0 of the first 2 lines"), "{message}");
    assert_eq!(refused(b"\n\n\n").0, "not_a_log");
    assert_eq!(refused(b"x").0, "not_a_log");
    assert_eq!(refused(&[0; 4 << 20]).0, "not_a_log");
}

#[test]
fn file_is_judged_after_its_first_mib() {
    let noise = b"noise\n".repeat(200_000);
    let mut client = Client::started(Limits::default(), 1 << 30);
    let before = &noise[..(1 << 20) - 1];
    assert_eq!(types(&client.send(before)), ["ack"]);
    let replies = client.send(b"n");
    assert_eq!(error(&client, &replies).0, "not_a_log");

    let log = LINE.repeat((1 << 20) / LINE.len() + 1);
    let noise_later = [log, noise].concat();
    accepted(&noise_later);
}

#[test]
fn at_least_one_line_in_a_hundred_must_be_a_request() {
    let noise = b"noise\n";
    accepted(&[&noise.repeat(990)[..], &LINE.repeat(10)].concat());
    let (code, message) = refused(&[&noise.repeat(991)[..], &LINE.repeat(9)].concat());
    assert_eq!(code, "not_a_log");
    assert!(message.contains("9 of the first 1000 lines"), "{message}");
    accepted(&[&noise.repeat(998)[..], LINE].concat());
}

#[test]
fn file_that_cannot_be_decompressed_is_refused_with_the_reason() {
    for (file, expected, part) in [
        (&b"\x1F\x8B\x08\0"[..], "damaged", "ends early"),
        (
            b"\x1F\x8B\x08\0\0\0\0\0\0\x03\xFF\xFF\xFF",
            "damaged",
            "is damaged",
        ),
        (b"\xFD7zXZ\0\0", "not_a_log", "xz"),
        (b"BZh91AY&SY", "not_a_log", "bzip2"),
    ] {
        let (code, message) = refused(file);
        assert_eq!(code, expected, "{message}");
        assert!(message.contains(part), "{message}");
        assert!(
            message.starts_with("The ") && message.ends_with('.'),
            "{message}"
        );
    }
}

#[test]
fn file_that_decompresses_beyond_the_limit_is_refused() {
    let file = gzip(&LINE.repeat(100));
    let mut limits = Limits::default();
    limits.decode.decoded_bytes_max = 100 * LINE.len() as u64;
    let mut client = Client::started(limits.clone(), file.len() as u64);
    client.send(&file);
    assert_eq!(types(&client.finish()), ["snapshot"]);
    limits.decode.decoded_bytes_max -= 1;
    let mut client = Client::started(limits, file.len() as u64);
    let replies = client.send(&file);
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "too_large");
    assert!(message.contains("8299"), "{message}");
}

#[test]
fn size_up_to_the_limit_is_accepted_and_one_byte_more_refused() {
    Client::started(Limits::default(), 64 << 30);
    let mut client = Client::new(Limits::default());
    let replies = client.say(&start(&[Some(68_719_476_736), Some(1)]));
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "too_large");
    assert!(
        message.contains("68719476737") && message.contains("68719476736"),
        "{message}"
    );
}

#[test]
fn name_up_to_the_limit_is_accepted_and_one_byte_more_refused() {
    let start = |bytes: usize| {
        let name = "n".repeat(bytes);
        format!(r#"{{"type":"start","files":[{{"name":"{name}","size":1}}]}}"#)
    };
    let mut client = Client::new(Limits::default());
    assert_eq!(types(&client.say(&start(1_024))), ["ready"]);
    let mut client = Client::new(Limits::default());
    let replies = client.say(&start(1_025));
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "protocol");
    assert!(
        message.contains("1025") && message.contains("1024"),
        "{message}"
    );
}

#[test]
fn text_up_to_the_limit_is_accepted_and_one_byte_more_refused() {
    let cancel = |bytes: usize| {
        let message = r#"{"type":"cancel"}"#;
        message.to_owned() + &" ".repeat(bytes - message.len())
    };
    let mut client = Client::new(Limits::default());
    client.say(&cancel(65_536));
    assert_eq!(client.session.outcome(), Some(&Outcome::Cancelled));
    let mut client = Client::new(Limits::default());
    let replies = client.say(&cancel(65_537));
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "protocol");
    assert!(
        message.contains("65537") && message.contains("65536"),
        "{message}"
    );
}

#[test]
fn more_bytes_than_announced_are_a_size_mismatch() {
    let mut client = Client::started(Limits::default(), LINE.len() as u64);
    client.send(LINE);
    let replies = client.send(b"1");
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "size_mismatch");
    assert!(
        message.contains("83 bytes") && message.contains("84"),
        "{message}"
    );
}

#[test]
fn fewer_bytes_than_announced_are_a_size_mismatch() {
    let mut client = Client::started(Limits::default(), 500);
    client.send(LINE);
    let replies = client.finish();
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "size_mismatch");
    assert!(
        message.contains("500") && message.contains("83"),
        "{message}"
    );
}

#[test]
fn window_limits_unacknowledged_bytes() {
    let limits = || Limits {
        window_bytes: 1_000,
        ..Limits::default()
    };
    let log = LINE.repeat(100);
    let mut client = Client::started(limits(), log.len() as u64);
    client
        .session
        .handle_chunk(&log[..1_000], false, client.now);
    assert_eq!(client.session.outcome(), None);
    client
        .session
        .handle_chunk(&log[1_000..1_001], false, client.now);
    let replies = client.replies();
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "window_exceeded");
    assert!(
        message.contains("1001") && message.contains("1000"),
        "{message}"
    );

    let mut patient = Client::started(limits(), log.len() as u64);
    for piece in log.chunks(1_000) {
        assert_eq!(types(&patient.send(piece)), ["ack"]);
    }
}

#[test]
fn window_smaller_than_a_mib_does_not_deadlock_within_a_message() {
    let limits = Limits {
        window_bytes: 1_000,
        ..Limits::default()
    };
    let log = LINE.repeat(100);
    let mut client = Client::started(limits, log.len() as u64);
    let mut acked = 0;
    for piece in log.chunks(250) {
        client.session.handle_chunk(piece, false, client.now);
        acked += types(&client.replies()).len();
    }
    assert_eq!(client.session.outcome(), None);
    assert!(acked > 10);
}

#[test]
fn silence_beyond_the_limit_ends_the_session() {
    for started in [false, true] {
        let mut client = Client::new(Limits::default());
        if started {
            client = Client::started(Limits::default(), 500);
        }
        client.now += Duration::from_millis(59_999);
        client.session.handle_timeout(client.now);
        assert_eq!(client.session.outcome(), None);
        client.now += Duration::from_millis(1);
        assert_eq!(client.session.poll_timeout(), Some(client.now));
        client.session.handle_timeout(client.now);
        let replies = client.replies();
        let (code, message) = error(&client, &replies);
        assert_eq!(code, "stalled");
        assert!(message.contains("60 seconds"), "{message}");
    }
}

#[test]
fn messages_out_of_turn_or_unknown_are_protocol_errors() {
    let mut client = Client::new(Limits::default());
    let replies = client.send(LINE);
    assert_eq!(error(&client, &replies).0, "protocol");
    assert_eq!(
        client.session.outcome(),
        Some(&Outcome::Failed(SessionError::NotStarted))
    );

    let mut client = Client::new(Limits::default());
    let replies = client.finish();
    assert_eq!(error(&client, &replies).0, "protocol");

    let mut client = Client::started(Limits::default(), 5);
    let replies = client.say(&start(&[Some(5)]));
    assert_eq!(error(&client, &replies).0, "protocol");

    let mut client = Client::started(Limits::default(), 5);
    let replies = client.say(r#"{"type":"#);
    assert_eq!(error(&client, &replies).0, "protocol");
}

#[test]
fn nothing_is_answered_after_an_error() {
    let mut client = Client::new(Limits::default());
    client.say("?");
    assert!(client.say(&start(&[Some(5)])).is_empty());
    assert!(client.send(LINE).is_empty());
    assert!(client.finish().is_empty());
}

#[test]
fn number_of_files_up_to_the_limit_is_accepted_and_one_more_refused() {
    Client::started_with(Limits::default(), &[Some(1); 256]);
    for files in [0, 257] {
        let mut client = Client::new(Limits::default());
        let replies = client.say(&start(&vec![Some(1); files]));
        let (code, message) = error(&client, &replies);
        assert_eq!(code, "protocol");
        assert!(
            message.contains("256") && message.contains(&files.to_string()),
            "{message}"
        );
    }
}

#[test]
fn file_that_is_not_a_log_is_named_among_several() {
    let sizes = [Some(LINE.len() as u64), Some(10)];
    let mut client = Client::started_with(Limits::default(), &sizes);
    client.send(LINE);
    let replies = client.send(b"dear diary");
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "not_a_log");
    assert!(message.starts_with("File 2: "), "{message}");
    assert!(message.contains("0 of the first 1 lines"), "{message}");
}

#[test]
fn only_the_last_file_may_be_open_ended() {
    let mut client = Client::new(Limits::default());
    let replies = client.say(&start(&[None, Some(1)]));
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "protocol");
    assert!(message.contains("File 1 has no size"), "{message}");
}

#[test]
fn open_ended_file_ends_at_the_limit_of_bytes() {
    let limits = Limits {
        upload_bytes_max: LINE.len() as u64,
        ..Limits::default()
    };
    let mut client = Client::started_with(limits, &[None]);
    assert_eq!(types(&client.send(LINE)), ["ack"]);
    let replies = client.send(b"1");
    let (code, message) = error(&client, &replies);
    assert_eq!(code, "too_large");
    assert!(
        message.contains("84") && message.contains("83"),
        "{message}"
    );
}

#[test]
fn unknown_format_session_or_file_is_refused() {
    for (text, expected) in [
        (
            r#"{"type":"start","files":[{"name":"a","size":1}],"format":"$status"}"#,
            "unknown_format",
        ),
        (r#"{"type":"resume","id":"x"}"#, "unknown_session"),
    ] {
        let mut client = Client::new(Limits::default());
        let replies = client.say(text);
        assert_eq!(error(&client, &replies).0, expected);
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut client = Client::started(Limits::default(), 0);
    client.finish();
    let replies = client.send(b"1");
    assert_eq!(error(&client, &replies).0, "protocol");
    assert_eq!(
        client.session.outcome(),
        Some(&Outcome::Failed(SessionError::AfterFinish))
    );
}

proptest! {
    #[test]
    fn no_order_of_messages_makes_the_session_panic(
        steps in prop::collection::vec((0usize..8, 0usize..300, 0u64..30_000), 0..40),
    ) {
        let start = start(&[Some(200)]);
        let texts = [
            start.as_str(),
            r#"{"type":"finish"}"#,
            r#"{"type":"query","seq":1,"query":{}}"#,
            r#"{"type":"cancel"}"#,
            "?",
        ];
        let mut client = Client::new(Limits::default());
        for (step, size, pause) in steps {
            match texts.get(step) {
                Some(text) => client.session.handle_text(text, client.now),
                None => client.session.handle_chunk(
                    &LINE.repeat(4)[..size],
                    size % 2 == 0,
                    client.now,
                ),
            }
            client.now += Duration::from_millis(pause);
            if step % 2 == 0 {
                client.session.handle_timeout(client.now);
                client.replies();
            }
        }
        let over = client.session.outcome().is_some();
        client.replies();
        prop_assert_eq!(client.session.is_finished(), over);
        prop_assert_eq!(client.session.poll_timeout().is_none(), over);
    }
}
