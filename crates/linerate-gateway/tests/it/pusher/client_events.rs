//! Events that clients send.

use serde_json::json;

use super::{APP, client::Pusher};
use crate::support::{Gateway, Json, token};

#[tokio::test]
async fn everyone_but_the_sender_gets_a_client_event() {
    let gateway = Gateway::guarded(APP).await;
    let mut sender = Pusher::connect(&gateway).await;
    let mut other = Pusher::connect(&gateway).await;
    let mut centrifuge = Json::connect_with(
        &gateway,
        &token(&json!({"sub": "ann", "channels": ["private-a"]})),
    )
    .await;
    for client in [&mut sender, &mut other] {
        client.subscribe("private-a").await;
    }
    sender
        .trigger("private-a", "client-typing", json!({"who": "ann"}))
        .await;
    let message = other.next().await;
    let expected = json!({
        "event": "client-typing", "channel": "private-a", "data": r#"{"who":"ann"}"#,
    });
    assert_eq!(message, expected);
    sender.expect_nothing().await;
    let push = centrifuge.next().await;
    assert_eq!(push["push"]["pub"]["data"], json!({"who": "ann"}));
    assert_eq!(push["push"]["pub"]["tags"]["event"], "client-typing");
    other
        .trigger("private-a", "client-typing", json!("text"))
        .await;
    assert_eq!(sender.event("private-a", "client-typing").await, "text");
}

#[tokio::test]
async fn the_sender_gets_the_events_of_others_in_the_same_batch() {
    let toml = format!("{APP}[channel]\nbatch_interval_ms = 300\n");
    let gateway = Gateway::open(&toml).await;
    let mut clients = [
        Pusher::connect(&gateway).await,
        Pusher::connect(&gateway).await,
    ];
    for client in &mut clients {
        client.subscribe("private-a").await;
    }
    for number in 0..4 {
        clients[number % 2]
            .trigger("private-a", "client-e", json!(number))
            .await;
        clients[number % 2].expect_nothing().await;
    }
    gateway.publish("private-a", "4").await;
    let [even, odd] = &mut clients;
    for (client, expected) in [(even, [1, 3]), (odd, [0, 2])] {
        for number in expected {
            assert_eq!(client.event("private-a", "client-e").await, number);
        }
        assert_eq!(client.event("private-a", "message").await, 4);
    }
}

#[tokio::test]
async fn compressed_blocks_have_exceptions_too() {
    let toml = format!(
        "{APP}[compression]\nenabled = true\nmessage_bytes_min = 64\n[channel]\ncompression_takeover = true\nbatch_interval_ms = 300\n"
    );
    let gateway = Gateway::open(&toml).await;
    let mut clients = [
        Pusher::connect_compressed(&gateway).await,
        Pusher::connect_compressed(&gateway).await,
    ];
    for client in &mut clients {
        client.subscribe("private-a").await;
    }
    let text = "the same text again and again, ".repeat(10);
    for round in 0..3 {
        clients[0]
            .trigger("private-a", "client-e", json!(text))
            .await;
        clients[0].expect_nothing().await;
        gateway
            .publish("private-a", &format!("\"{round} {text}\""))
            .await;
        assert_eq!(clients[1].event("private-a", "client-e").await, text);
        for client in &mut clients {
            let expected = format!("{round} {text}");
            assert_eq!(client.event("private-a", "message").await, expected);
        }
    }
}

#[tokio::test]
async fn events_that_are_not_allowed_are_refused() {
    let gateway = Gateway::open(&format!("{APP}event_bytes_max = 100\n")).await;
    let mut client = Pusher::connect(&gateway).await;
    let mut other = Pusher::connect(&gateway).await;
    for channel in ["news", "private-a", "private-encrypted-a"] {
        client.subscribe(channel).await;
        other.subscribe(channel).await;
    }
    let long = format!("client-{}", "x".repeat(194));
    for (channel, event, data) in [
        ("news", "client-e", json!(1)),
        ("private-encrypted-a", "client-e", json!(1)),
        ("private-b", "client-e", json!(1)),
        ("private- ", "client-e", json!(1)),
        ("", "client-e", json!(1)),
        ("private-a", &long, json!(1)),
        ("private-a", "client-e", json!("x".repeat(101))),
    ] {
        client.trigger(channel, event, data).await;
        client.error(Some(4301)).await;
    }
    client.trigger("private-a", "e", json!(1)).await;
    client.error(None).await;
    other.expect_nothing().await;
    let (name, data) = (&long[..200], "x".repeat(100));
    client.trigger("private-a", name, json!(data)).await;
    assert_eq!(other.event("private-a", name).await, data);
}

#[tokio::test]
async fn client_events_are_off_by_default_and_limited() {
    let gateway = Gateway::open(&APP.replace("client_events = true", "")).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    client.trigger("private-a", "client-e", json!(1)).await;
    client.error(Some(4301)).await;
    let gateway = Gateway::open(&format!("{APP}client_events_per_second_max = 2\n")).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    for _ in 0..10 {
        client.trigger("private-a", "client-e", json!(1)).await;
    }
    for _ in 0..6 {
        client.error(Some(4301)).await;
    }
}
