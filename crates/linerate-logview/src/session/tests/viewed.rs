//! Uploads that other clients view.

use serde_json::{Value, json};

use super::flow::{Client, LINE, types};
use crate::session::{Limits, Lookup, Outcome, Session, SessionError, SessionId, Viewed, Viewer};

const NAME: SessionId = SessionId::from_bytes([0xA5; 16]);

/// Starts an upload of two lines that may be viewed.
fn upload() -> Client {
    let mut client = Client::new(Limits::default());
    let id = client.session.id();
    client.session = Session::new(Limits::default(), id, client.now).with_view(NAME);
    let start = super::flow::start(&[Some(2 * LINE.len() as u64)]);
    let ready = client.say(&start);
    assert_eq!(ready[0]["view"], "a5".repeat(16));
    assert_eq!(ready[0]["files"], Value::Null, "the client knows its files");
    client
}

fn viewer() -> Viewer {
    Viewer::new(Limits::default(), SessionId::from_bytes([1; 16]))
}

/// Returns all replies that are due.
fn replies(viewer: &mut Viewer, client: &Client) -> Vec<Value> {
    let mut replies = Vec::new();
    loop {
        match viewer.poll_reply(Viewed::Upload(&client.session), client.now) {
            Some(reply) => replies.push(serde_json::from_str(&reply).unwrap()),
            None if viewer.has_questions() => {}
            None => return replies,
        }
    }
}

#[test]
fn viewer_gets_the_files_and_the_figures_so_far() {
    let mut client = upload();
    client.send(LINE);
    let mut first = viewer();
    assert!(first.needs_snapshot());
    let seen = replies(&mut first, &client);
    assert!(!first.needs_snapshot());
    assert_eq!(types(&seen), ["ready", "snapshot"]);
    assert_eq!(seen[0]["window_bytes"], 0);
    assert_eq!(seen[0]["bytes"], LINE.len());
    assert_eq!(seen[0]["view"], "a5".repeat(16));
    assert_ne!(
        seen[0]["id"],
        "5a".repeat(16),
        "only the uploader may resume"
    );
    let files = json!([{"name": "a.log", "size": 2 * LINE.len()}]);
    assert_eq!(seen[0]["files"], files);
    assert_eq!(seen[1]["final"], false);
    assert_eq!(seen[1]["summary"]["requests"], 1);

    client.send(LINE);
    client.finish();
    let seen = replies(&mut viewer(), &client);
    assert_eq!(seen[1]["final"], true);
    assert_eq!(seen[1]["summary"]["requests"], 2);
}

#[test]
fn resumed_upload_lists_its_files() {
    let mut client = upload();
    client.session.handle_resume(client.now);
    let ready = client.replies();
    assert_eq!(ready[0]["files"][0]["name"], "a.log");
    assert_eq!(ready[0]["view"], "a5".repeat(16));
}

#[test]
fn each_viewer_has_questions_of_its_own() {
    let mut client = upload();
    client.send(LINE);
    let (mut one, mut other) = (viewer(), viewer());
    replies(&mut one, &client);
    replies(&mut other, &client);
    one.handle_text(r#"{"type":"query","seq":1,"query":{"filters":["status == 404"]}}"#);
    other.handle_text(r#"{"type":"query","seq":1,"query":{"filters":["status == 200"]}}"#);
    assert!(one.has_questions() && other.has_questions());
    // The upload continues between the question and its answer.
    client.send(LINE);
    assert_eq!(replies(&mut one, &client)[0]["summary"]["requests"], 0);
    assert_eq!(replies(&mut other, &client)[0]["summary"]["requests"], 2);
    assert!(!one.has_questions() && one.memory_bytes() == 0);
}

#[test]
fn viewer_cannot_change_the_upload() {
    let mut client = upload();
    client.send(LINE);
    for text in [
        r#"{"type":"finish"}"#,
        r#"{"type":"stop"}"#,
        r#"{"type":"start","files":[]}"#,
        r#"{"type":"view","name":"a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"}"#,
        r#"{"type":"resume","id":"5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"}"#,
    ] {
        let mut viewer = viewer();
        replies(&mut viewer, &client);
        viewer.handle_text(text);
        assert_eq!(
            replies(&mut viewer, &client)[0]["code"],
            "protocol",
            "{text}"
        );
    }
    let mut leaving = viewer();
    leaving.handle_text(r#"{"type":"cancel"}"#);
    assert_eq!(leaving.outcome(), Some(&Outcome::Cancelled));
    let mut sending = viewer();
    sending.handle_binary();
    assert!(matches!(sending.outcome(), Some(Outcome::Failed(_))));
    client.send(LINE);
    assert_eq!(client.finish()[0]["summary"]["requests"], 2);
}

#[test]
fn viewer_of_an_upload_that_is_over_is_told() {
    let mut client = upload();
    let mut viewer = viewer();
    replies(&mut viewer, &client);
    viewer.handle_text(r#"{"type":"query","seq":1,"query":{}}"#);
    client.say(r#"{"type":"cancel"}"#);
    let told = replies(&mut viewer, &client);
    assert_eq!(types(&told), ["error"]);
    assert_eq!(told[0]["code"], "unknown_session");
    assert!(!viewer.has_questions());
}

#[test]
fn questions_of_viewers_keep_finished_figures_but_not_a_stalled_upload() {
    let limits = Limits::default();
    let mut client = upload();
    client.now += limits.silence_max;
    client.session.handle_viewer(client.now);
    client.session.handle_timeout(client.now);
    assert_eq!(client.replies()[0]["code"], "stalled");

    let mut client = upload();
    client.send(&LINE.repeat(2));
    client.finish();
    client.now += limits.idle_max;
    client.session.handle_viewer(client.now);
    client.session.handle_timeout(client.now);
    assert_eq!(client.session.outcome(), None);
    client.now += limits.idle_max;
    client.session.handle_timeout(client.now);
    assert_eq!(client.replies()[0]["code"], "idle");
}

#[test]
fn request_to_view_is_left_to_the_caller_and_a_malformed_name_is_unknown() {
    let mut client = Client::new(Limits::default());
    client.say(r#"{"type":"view","name":"a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5"}"#);
    assert_eq!(client.session.take_lookup(), Some(Lookup::View(NAME)));
    for name in ["", "a5", "A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5A5", "\\u0000"] {
        let mut client = Client::new(Limits::default());
        let told = client.say(&format!(r#"{{"type":"view","name":"{name}"}}"#));
        assert_eq!(
            told,
            [serde_json::from_str::<Value>(&SessionError::UnknownSession.to_json()).unwrap()]
        );
    }
}
