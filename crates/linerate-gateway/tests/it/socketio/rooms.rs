//! Publications as events, and the rooms of a client.

use serde_json::json;

use super::{
    ON,
    client::{Arrived, SocketIo},
};
use crate::support::{Gateway, token};

/// Starts a server that wants tokens, and connects a client with one.
async fn guarded(claims: serde_json::Value) -> (Gateway, SocketIo, String) {
    let gateway = Gateway::guarded(ON).await;
    let token = token(&claims);
    let mut client = SocketIo::open(&gateway).await;
    client.send(&format!(r#"40{{"token":"{token}"}}"#)).await;
    client.connected("40").await;
    (gateway, client, token)
}

#[tokio::test]
async fn a_publication_is_an_event() {
    let (gateway, mut client, _) = guarded(json!({"sub": "ann"})).await;
    gateway.publish("all", r#"{"a":1}"#).await;
    gateway.publish("all", "not JSON").await;
    let named = json!({"channel": "all", "data": [1, 2], "tags": {"event": "created"}});
    gateway.api("publish", &named).await;
    let enveloped = json!({"channel": "all", "data": {"event": "moved", "args": [1, "a"]}});
    gateway.api("publish", &enveloped).await;
    client
        .expect(&[
            r#"42["message",{"a":1}]"#,
            r#"42["message","not JSON"]"#,
            r#"42["created",[1,2]]"#,
            r#"42["moved",1,"a"]"#,
        ])
        .await;
}

#[tokio::test]
async fn bytes_are_attachments() {
    let gateway = Gateway::open(ON).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    gateway.publish_bytes("all", b"\xff\x00").await;
    let packet = r#"451-["message",{"_placeholder":true,"num":0}]"#;
    client.expect(&[packet]).await;
    assert_eq!(client.next().await, Arrived::Binary(b"\xff\x00".to_vec()));
    let envelope = r#"{"event":"e","args":[{"_placeholder":true,"base64":"AQI="},7]}"#;
    gateway.publish("all", envelope).await;
    let packet = r#"451-["e",{"_placeholder":true,"num":0},7]"#;
    client.expect(&[packet]).await;
    assert_eq!(client.next().await, Arrived::Binary(vec![1, 2]));
}

#[tokio::test]
async fn compressed_events_keep_their_attachments() {
    let gateway = Gateway::open(ON).await;
    let mut client = SocketIo::connect_compressed(&gateway).await;
    for _ in 0..2 {
        gateway.publish_bytes("all", &[0xff; 1_000]).await;
        let packet = r#"451-["message",{"_placeholder":true,"num":0}]"#;
        client.expect(&[packet]).await;
        assert_eq!(client.next().await, Arrived::Binary(vec![0xff; 1_000]));
    }
}

#[tokio::test]
async fn a_client_is_in_the_room_of_its_own_id() {
    let gateway = Gateway::open(ON).await;
    let (mut one, sid) = SocketIo::connect(&gateway).await;
    let (mut other, _) = SocketIo::connect(&gateway).await;
    one.send("40/chat,").await;
    one.connected("40/chat,").await;
    gateway.publish(&sid, "1").await;
    one.expect(&[r#"42["message",1]"#]).await;
    gateway.publish(&format!("/chat:{sid}"), "2").await;
    one.expect(&[r#"42/chat,["message",2]"#]).await;
    other.expect_nothing().await;
}

#[tokio::test]
async fn a_token_names_rooms_of_all_namespaces() {
    let claims = json!({"sub": "ann", "channels": ["news", "/chat:lobby", "/other:a"]});
    let (gateway, mut client, token) = guarded(claims).await;
    gateway.publish("/chat:lobby", "1").await;
    gateway.publish("/other:a", "1").await;
    gateway.publish("news", "2").await;
    client.expect(&[r#"42["message",2]"#]).await;
    client
        .send(&format!(r#"40/chat,{{"token":"{token}"}}"#))
        .await;
    client.connected("40/chat,").await;
    gateway.publish("/chat:lobby", "3").await;
    client.expect(&[r#"42/chat,["message",3]"#]).await;
}

#[tokio::test]
async fn the_application_moves_a_client_between_rooms() {
    let (gateway, mut client, _) = guarded(json!({"sub": "ann"})).await;
    let change = |channel: &str| json!({"user": "ann", "channel": channel});
    for channel in ["a", "/chat:a"] {
        gateway.api("subscribe", &change(channel)).await;
    }
    // A command after the notice shows that it has been handled.
    client.expect_nothing().await;
    gateway.publish("/chat:a", "0").await;
    gateway.publish("a", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
    gateway.api("unsubscribe", &change("a")).await;
    client.expect_nothing().await;
    gateway.publish("a", "2").await;
    gateway.publish("all", "3").await;
    client.expect(&[r#"42["message",3]"#]).await;
}

#[tokio::test]
async fn a_client_that_leaves_a_namespace_leaves_its_rooms() {
    let gateway = Gateway::open(ON).await;
    let (mut client, sid) = SocketIo::connect(&gateway).await;
    client.send("40/chat,").await;
    client.connected("40/chat,").await;
    client.send("41/chat,").await;
    client.expect_nothing().await;
    for room in [
        "/chat:all".to_owned(),
        format!("/chat:{sid}"),
        "all".to_owned(),
    ] {
        gateway.publish(&room, "1").await;
    }
    client.expect(&[r#"42["message",1]"#]).await;
    client.send("40/chat,").await;
    assert_eq!(client.connected("40/chat,").await, sid);
    gateway.publish("/chat:all", "2").await;
    client.expect(&[r#"42/chat,["message",2]"#]).await;
    client.send("41").await;
    client.send("40").await;
    assert_eq!(client.connected("40").await, sid);
}

#[tokio::test]
async fn a_gap_is_an_event_and_the_client_stays_in_the_room() {
    let toml = format!("{ON}[channel]\nhistory_size = 10\nrecover = true\npositioned = true\n");
    let gateway = Gateway::open(&toml).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    gateway.publish("all", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
    gateway.cut_link().await;
    let gap = client.text().await;
    assert!(gap.starts_with(r#"42["linerate:gap",{"channel":"#), "{gap}");
}

#[tokio::test]
async fn a_namespace_with_more_rooms_than_a_client_may_have_is_refused() {
    let gateway = Gateway::open(&format!("{ON}[client]\nchannels_max = 3\n")).await;
    let (mut client, _) = SocketIo::connect(&gateway).await;
    client.send("40/chat,").await;
    let error = client.text().await;
    assert!(
        error.starts_with(r#"44/chat,{"message":"limit exceeded"#),
        "{error}"
    );
    gateway.publish("all", "1").await;
    client.expect(&[r#"42["message",1]"#]).await;
}
