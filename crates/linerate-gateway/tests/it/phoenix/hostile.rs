//! Messages that no Phoenix client sends.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;

use super::{
    ON,
    client::{Phoenix, error, ok},
};
use crate::{
    backend::support::{Answer, Backend},
    support::{Gateway, config},
};

#[tokio::test]
async fn malformed_messages_end_the_connection() {
    let gateway = Gateway::open(ON).await;
    let long = format!(r#"["{}","1","t","e",{{}}]"#, "1".repeat(256));
    for (message, reason) in [
        ("", "command 1 is malformed JSON"),
        ("[]", "command 1 is malformed JSON"),
        (r#"["1","1",7,"e",{}]"#, "command 1 is malformed JSON"),
        (
            &*long,
            "reference of the join has 256 bytes; at most 255 are allowed",
        ),
        (
            "\0\u{1}",
            "malformed packet: the header of a binary message",
        ),
    ] {
        let mut client = Phoenix::connect(&gateway).await;
        client.ws.send(message).await.unwrap();
        let text = client.closed(1007).await;
        assert!(text.contains(reason), "{text}");
    }
}

#[tokio::test]
async fn binary_messages_with_wrong_lengths_end_the_connection() {
    let gateway = Gateway::open(ON).await;
    for message in [
        &b"\x00\xff\xff\xff\xff"[..],
        b"\x00\x00\x00\x01\x00\xff",
        b"\x01",
    ] {
        let mut client = Phoenix::connect(&gateway).await;
        client.ws.send(message).await.unwrap();
        client.closed(1007).await;
    }
}

#[tokio::test]
async fn messages_over_the_rate_limit_are_refused() {
    let toml = format!("{ON}[client]\ncommands_per_second_max = 4\n");
    let gateway = Gateway::open(&toml).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    for _ in 0..5 {
        client
            .send(json!(["1", "2", "phoenix", "heartbeat", {}]))
            .await;
    }
    loop {
        let payload = client.response("1", "2", "phoenix").await;
        if payload["status"] == "error" {
            assert_eq!(payload, error(111, "too many requests"));
            break;
        }
    }
}

#[tokio::test]
async fn a_topic_is_joined_once_while_a_join_is_pending() {
    let (backend, may_answer) = (Backend::start().await, Arc::new(Semaphore::new(0)));
    backend.answers("subscribe", Answer::Held(may_answer.clone()));
    let backends = backend.backends(&["subscribe"], "");
    let toml = format!("{ON}[channel]\nsubscribe_backend = \"subscribe\"\n{backends}");
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Phoenix::connect(&gateway).await;
    for reference in ["1", "2"] {
        client
            .send(json!([reference, reference, "room:1", "phx_join", {}]))
            .await;
    }
    let refused = client.response("2", "2", "room:1").await;
    assert_eq!(refused, error(105, "already subscribed"));
    may_answer.add_permits(1);
    assert_eq!(client.response("1", "1", "room:1").await, ok(json!({})));
    client.expect_nothing().await;
}
