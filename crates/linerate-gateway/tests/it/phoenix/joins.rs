//! Joining and leaving topics.

use serde_json::json;

use super::{
    ON,
    client::{PATH, Phoenix, error, ok},
};
use crate::{
    backend::support::{Answer, Backend},
    support::{Gateway, config, token},
};

#[tokio::test]
async fn a_topic_is_joined_and_left() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    assert_eq!(client.join("room:1", json!({})).await, ok(json!({})));
    gateway.publish("room:1", "{\"a\":1}").await;
    let broadcast = json!([null, null, "room:1", "message", {"a": 1}]);
    assert_eq!(client.json().await, broadcast);
    assert_eq!(
        client.push("room:1", "phx_leave", json!({})).await,
        ok(json!({}))
    );
    assert_eq!(
        client.json().await,
        json!(["1", "1", "room:1", "phx_close", {}])
    );
    gateway.publish("room:1", "1").await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn a_topic_that_is_not_joined_can_be_left() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    client
        .send(json!([null, "2", "room:1", "phx_leave", {}]))
        .await;
    let expected = json!([null, "2", "room:1", "phx_reply", ok(json!({}))]);
    assert_eq!(client.json().await, expected);
}

#[tokio::test]
async fn a_topic_that_is_joined_again_is_left_before() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    client
        .send(json!(["5", "5", "room:1", "phx_join", {}]))
        .await;
    assert_eq!(
        client.json().await,
        json!(["1", "1", "room:1", "phx_close", {}])
    );
    assert_eq!(client.response("5", "5", "room:1").await, ok(json!({})));
    // What belongs to the earlier join has no effect.
    client.push("room:1", "phx_leave", json!({})).await;
    gateway.publish("room:1", "1").await;
    assert_eq!(
        client.json().await,
        json!([null, null, "room:1", "message", 1])
    );
}

#[tokio::test]
async fn joins_that_are_not_allowed_are_refused_with_the_reason() {
    let toml = format!(
        "{ON}[client]\nchannels_max = 1\n[[namespace]]\nname = \"closed\"\nallow_subscribe = false\n"
    );
    let gateway = Gateway::open(&toml).await;
    let mut client = Phoenix::connect(&gateway).await;
    let long = "t".repeat(256);
    for (topic, expected) in [
        ("closed:1", error(103, "permission denied")),
        (
            &*long,
            error(
                107,
                "bad request: topic has 256 bytes; at most 255 are allowed",
            ),
        ),
    ] {
        assert_eq!(client.join(topic, json!({})).await, expected);
    }
    assert_eq!(client.join("a b", json!({})).await["response"]["code"], 107);
    client.join("room:1", json!({})).await;
    let full = error(106, "limit exceeded: at most 1 channels");
    assert_eq!(client.join("room:2", json!({})).await, full);
}

#[tokio::test]
async fn a_token_in_the_payload_grants_a_topic() {
    let toml = format!("{ON}[[namespace]]\nname = \"closed\"\nallow_subscribe = false\n");
    let gateway = Gateway::guarded(&toml).await;
    let connection = token(&json!({"sub": "ann"}));
    let path = format!("{}&token={connection}", PATH);
    let mut client = Phoenix::open(&gateway, &path).await;
    let granted = token(&json!({"sub": "ann", "channel": "closed:1"}));
    let joined = client.join("closed:1", json!({"token": granted})).await;
    assert_eq!(joined, ok(json!({})));
    let refused = client.join("closed:2", json!({"token": granted})).await;
    assert_eq!(refused["response"]["code"], 103, "{refused}");
}

#[tokio::test]
async fn a_backend_is_asked_about_joins_and_its_data_is_the_response() {
    let backend = Backend::start().await;
    let toml = format!(
        "{ON}[channel]\nsubscribe_backend = \"subscribe\"\n{}",
        backend.backends(&["subscribe"], "")
    );
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Phoenix::connect(&gateway).await;
    backend.returns("subscribe", json!({"data": {"last": 7}}));
    let joined = client.join("room:1", json!({"since": 3})).await;
    assert_eq!(joined, ok(json!({"last": 7})));
    let asked = backend.only().body;
    assert_eq!(asked["channel"], "room:1");
    assert_eq!(asked["data"], json!({"since": 3}));
    backend.answers(
        "subscribe",
        Answer::Json(json!({"error": {"code": 404, "message": "gone"}})),
    );
    assert_eq!(client.join("room:2", json!({})).await, error(404, "gone"));
}

#[tokio::test]
async fn several_topics_are_joined_at_once() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    for number in 1..=3 {
        let reference = number.to_string();
        let topic = format!("room:{number}");
        client
            .send(json!([reference, reference, topic, "phx_join", {}]))
            .await;
    }
    for number in 1..=3 {
        let reference = number.to_string();
        let topic = format!("room:{number}");
        let response = client.response(&reference, &reference, &topic).await;
        assert_eq!(response, ok(json!({})));
    }
}

#[tokio::test]
async fn the_server_ends_joins() {
    let toml = format!("{ON}[channel]\nallow_subscribe = true\n");
    let gateway = Gateway::guarded(&toml).await;
    let token = token(&json!({"sub": "ann"}));
    let path = format!("{}&token={token}", PATH);
    let mut client = Phoenix::open(&gateway, &path).await;
    client.join("room:1", json!({})).await;
    // A client would ignore a topic that it has not joined.
    let subscribe = json!({"user": "ann", "channel": "room:2"});
    gateway.api("subscribe", &subscribe).await;
    gateway.publish("room:2", "1").await;
    client.expect_nothing().await;
    let unsubscribe = json!({"user": "ann", "channel": "room:1"});
    gateway.api("unsubscribe", &unsubscribe).await;
    assert_eq!(
        client.json().await,
        json!(["1", "1", "room:1", "phx_close", {}])
    );
}

#[tokio::test]
async fn after_a_gap_a_client_joins_again() {
    let toml = format!("{ON}[channel]\ngaps = \"told\"\n");
    let gateway = Gateway::open(&toml).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    gateway.cut_link().await;
    assert_eq!(
        client.json().await,
        json!(["1", "1", "room:1", "phx_error", {}])
    );
    assert_eq!(client.join("room:1", json!({})).await, ok(json!({})));
    client.expect_nothing().await;
}
