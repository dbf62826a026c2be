//! Any messages in any order in the session protocol of log uploads, from the client that uploads
//! and from one that views the upload.
#![no_main]

use core::time::Duration;

use libfuzzer_sys::fuzz_target;
use linerate_logview::session::{
    Limits, Outcome, Session, SessionError, SessionId, Viewed, Viewer,
};

// Each message begins with its kind and its length; time advances between some of them.
fuzz_target!(|data: &[u8]| {
    let mut limits = Limits::default();
    limits.upload_bytes_max = 4_000;
    limits.window_bytes = 1_000;
    limits.files_max = 3;
    limits.decode.decoded_bytes_max = 1 << 20;
    let mut now = Duration::ZERO;
    let mut viewer = Viewer::new(limits.clone(), SessionId::from_bytes([8; 16]));
    let session = Session::new(limits, SessionId::from_bytes([7; 16]), now);
    let mut session = session.with_view(SessionId::from_bytes([9; 16]));
    let mut rest = data;
    let mut said = Vec::new();
    let mut seen = Vec::new();
    while let [kind, length, behind @ ..] = rest {
        let (message, behind) = behind.split_at(usize::from(*length).min(behind.len()));
        match kind % 8 {
            0 if kind & 0x20 != 0 => view(&mut viewer, message, &session, now, &mut seen),
            1 if kind & 0x20 != 0 => viewer.handle_binary(),
            0..3 => session.handle_text(&String::from_utf8_lossy(message), now),
            3 => take_in_turns(&mut session, message, usize::from(*length), now),
            4 | 5 => session.handle_chunk(message, true, now),
            6 => now += Duration::from_millis(u64::from(*length)),
            _ => now += Duration::from_secs(u64::from(*length)),
        }
        if kind & 0x80 != 0 {
            session.handle_resume(now);
        }
        session.handle_timeout(now);
        if kind & 0x40 == 0 {
            listen(&mut session, now, &mut said);
        }
        _ = session.take_lookup();
        rest = behind;
    }
    listen(&mut session, now, &mut said);
    check(&session, &said);
    look(&mut viewer, &session, now, &mut seen);
    check_viewer(&viewer, &seen);
});

/// Passes a text to the viewer, which must not change the session's memory.
fn view(
    viewer: &mut Viewer,
    text: &[u8],
    session: &Session,
    now: Duration,
    seen: &mut Vec<serde_json::Value>,
) {
    let before = session.memory_bytes();
    viewer.handle_text(&String::from_utf8_lossy(text));
    look(viewer, session, now, seen);
    assert_eq!(session.memory_bytes(), before);
}

/// Polls the viewer until all questions are answered.
fn look(viewer: &mut Viewer, session: &Session, now: Duration, seen: &mut Vec<serde_json::Value>) {
    loop {
        match viewer.poll_reply(Viewed::Upload(session), now) {
            Some(reply) => seen.push(serde_json::from_str(&reply).expect("replies are JSON")),
            None if viewer.has_questions() => {}
            None => return,
        }
    }
}

fn check_viewer(viewer: &Viewer, seen: &[serde_json::Value]) {
    let errors = seen.iter().filter(|reply| reply["type"] == "error").count();
    match viewer.outcome() {
        Some(Outcome::Failed(error)) => {
            assert_eq!(errors, 1);
            assert_eq!(seen[seen.len() - 1]["code"], error.code());
        }
        _ => assert_eq!(errors, 0),
    }
    assert!(!viewer.has_questions() && viewer.memory_bytes() == 0);
    let secret = "07".repeat(16);
    assert!(
        seen.iter().all(|reply| reply["id"] != *secret),
        "a viewer never learns what resumes the upload"
    );
}

/// Passes a piece of a message like a caller that yields to others in between.
fn take_in_turns(session: &mut Session, piece: &[u8], work_max: usize, now: Duration) {
    let mut rest = piece;
    loop {
        let progress = session.handle_some(rest, false, work_max.max(1), now);
        rest = &rest[progress.read..];
        if progress.is_done {
            return;
        }
    }
}

fn listen(session: &mut Session, now: Duration, said: &mut Vec<serde_json::Value>) {
    while let Some(reply) = session.poll_reply(now) {
        said.push(serde_json::from_str(&reply).expect("replies are JSON"));
    }
    assert!(
        session
            .poll_timeout()
            .is_none_or(|due| due >= now || !session.is_finished())
    );
}

fn check(session: &Session, said: &[serde_json::Value]) {
    let kinds: Vec<&str> = said
        .iter()
        .filter_map(|reply| reply["type"].as_str())
        .collect();
    assert_eq!(kinds.len(), said.len(), "each reply has a type");
    let errors = kinds.iter().filter(|kind| **kind == "error").count();
    match session.outcome() {
        Some(Outcome::Failed(error)) => {
            assert_eq!((errors, kinds.last()), (1, Some(&"error")), "{error}");
            assert!(is_expected(error), "{error}");
            assert_eq!(said[said.len() - 1]["code"], error.code());
            assert_eq!(
                session.memory_bytes(),
                0,
                "a failed session keeps no memory"
            );
        }
        Some(_) => assert_eq!((errors, session.memory_bytes()), (0, 0)),
        None => assert_eq!(errors, 0),
    }
    let acked = said.iter().filter_map(|reply| reply["bytes"].as_u64());
    assert!(acked.is_sorted(), "acknowledgements only grow");
}

/// The errors that a client can cause.
fn is_expected(error: &SessionError) -> bool {
    !matches!(error, SessionError::UnknownFile)
}
