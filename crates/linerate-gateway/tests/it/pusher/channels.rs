//! Public and private channels.

use serde_json::json;

use super::{
    APP,
    client::{Pusher, auth, data},
};
use crate::support::{Gateway, Json, error};

#[tokio::test]
async fn publications_of_any_publisher_are_events() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    gateway.publish("news", r#"{"b":1.50,"a":"ü"}"#).await;
    let message = client.next().await;
    let expected = json!({
        "event": "message", "channel": "news", "data": r#"{"b":1.50,"a":"ü"}"#,
    });
    assert_eq!(message, expected);
    gateway.publish("news", "not JSON").await;
    assert_eq!(client.event("news", "message").await, "not JSON");
}

#[tokio::test]
async fn a_tag_names_the_event() {
    let gateway = Gateway::guarded(&format!(
        "{APP}[channel]\nallow_subscribe = true\nallow_anonymous = true"
    ))
    .await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    let body = json!({"channel": "news", "data": {"a": 1}, "tags": {"event": "created"}});
    gateway.api("publish", &body).await;
    assert_eq!(client.event("news", "created").await, json!({"a": 1}));
}

#[tokio::test]
async fn a_private_channel_needs_a_signature() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    let right = auth(&format!("{}:private-a", client.socket_id));
    let other = auth(&format!("{}1:private-a", client.socket_id));
    for channel in [
        "private-a",
        "private-encrypted-a",
        "presence-a",
        "private-cache-a",
    ] {
        for auth in [
            "",
            "app-key:",
            "app-key",
            &other,
            &right.replace("app-key", "other"),
        ] {
            client.ask(channel, auth, None).await;
            client.subscription_error(channel, 401).await;
        }
    }
    client.ask("private-b", &right, None).await;
    client.subscription_error("private-b", 401).await;
    client.subscribe("private-a").await;
    gateway.publish("private-a", "1").await;
    assert_eq!(client.event("private-a", "message").await, 1);
    client.subscribe("private-encrypted-a").await;
}

#[tokio::test]
async fn the_signature_for_a_channel_is_not_valid_for_another() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    let signature = auth(&format!("{}:private-room:7", client.socket_id));
    client.ask("private-room:7", &signature, None).await;
    client.subscription_error("private-room:7", 401).await;
    let data = r#"{"user_id":"7"}"#;
    let signature = auth(&format!("{}:presence-room:{data}", client.socket_id));
    let name = format!("presence-room:{data}");
    client.ask(&name, &signature, None).await;
    client.subscription_error(&name, 401).await;
    let user = auth(&format!("{}::user::{data}", client.socket_id));
    for channel in ["private-user", "presence-user"] {
        client.ask(channel, &user, Some(data)).await;
        client.subscription_error(channel, 401).await;
    }
}

#[tokio::test]
async fn clients_of_other_protocols_need_a_token_for_private_channels() {
    let gateway = Gateway::open(APP).await;
    let mut client = Json::connect(&gateway).await;
    for channel in ["private-a", "presence-a", "#server-to-user-7"] {
        let command = json!({"id": 2, "subscribe": {"channel": channel}});
        assert_eq!(error(&client.ask(&command.to_string()).await).0, 103);
        let command = json!({"id": 3, "publish": {"channel": channel, "data": 1}});
        assert_eq!(error(&client.ask(&command.to_string()).await).0, 103);
    }
    client.subscribe("*").await;
    gateway.publish("private-a", "1").await;
    gateway.publish("news", "2").await;
    let push = client.next().await;
    assert_eq!(push["push"]["pub"]["data"], 2, "{push}");
}

#[tokio::test]
async fn public_channels_are_open_if_their_options_say_so() {
    let gateway = Gateway::guarded(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.ask("news", "", None).await;
    client.subscription_error("news", 403).await;
    client.subscribe("private-news").await;
}

#[tokio::test]
async fn a_subscription_ends_and_can_be_made_again() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    client.ask("news", "", None).await;
    client.subscription_error("news", 409).await;
    client.unsubscribe("news").await;
    client.unsubscribe("news").await;
    client.unsubscribe("not a name").await;
    client.expect_nothing().await;
    // Once another client has the publication, it can no longer arrive after the next subscription.
    let mut other = Pusher::connect(&gateway).await;
    other.subscribe("news").await;
    gateway.publish("news", "1").await;
    assert_eq!(other.event("news", "message").await, 1);
    client.expect_nothing().await;
    client.subscribe("news").await;
    gateway.publish("news", "2").await;
    assert_eq!(client.event("news", "message").await, 2);
}

#[tokio::test]
async fn names_and_the_number_of_channels_are_limited() {
    let toml = format!("{APP}[client]\nchannels_max = 2\n");
    let gateway = Gateway::open(&toml).await;
    let mut client = Pusher::connect(&gateway).await;
    for name in ["", "a b", &"x".repeat(256)] {
        client.ask(name, "", None).await;
        client.subscription_error(name, 400).await;
    }
    client.subscribe("one").await;
    client.subscribe("two").await;
    client.ask("three", "", None).await;
    client.subscription_error("three", 429).await;
}

#[tokio::test]
async fn a_gap_is_an_event_and_the_subscription_continues() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    gateway.cut_link().await;
    let message = client.next().await;
    assert_eq!(message["event"], "linerate:gap", "{message}");
    assert_eq!(data(&message)["cause"], "link_lost");
    gateway.publish("news", "1").await;
    assert_eq!(client.event("news", "message").await, 1);
}

#[tokio::test]
async fn a_payload_that_is_not_text_ends_the_connection() {
    let gateway = Gateway::open(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("news").await;
    gateway.publish_bytes("news", b"\xff").await;
    client.closed(4009).await;
}

#[tokio::test]
async fn the_application_ends_a_subscription() {
    let gateway = Gateway::guarded(APP).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    let body = json!({"client": client.socket_id, "channel": "private-a"});
    gateway.api("unsubscribe", &body).await;
    client.subscription_error("private-a", 410).await;
}
