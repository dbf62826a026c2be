//! Publications as broadcasts.

use serde_json::json;

use super::{
    ON,
    client::{Arrived, Phoenix},
};
use crate::support::Gateway;

#[tokio::test]
async fn publications_of_any_publisher_are_broadcasts() {
    let gateway = Gateway::open(ON).await;
    let mut client = Phoenix::connect(&gateway).await;
    client.join("room:1", json!({})).await;
    let tagged = json!({"channel": "room:1", "data": {"a": 1}, "tags": {"event": "created"}});
    gateway.api("publish", &tagged).await;
    assert_eq!(
        client.json().await,
        json!([null, null, "room:1", "created", {"a": 1}])
    );
    gateway.publish("room:1", "[1]").await;
    assert_eq!(
        client.json().await,
        json!([null, null, "room:1", "message", [1]])
    );
    gateway.publish_bytes("room:1", b"\xff").await;
    let binary = b"\x02\x06\x07room:1message\xff".to_vec();
    assert_eq!(client.next().await, Arrived::Binary(binary));
    gateway.publish_bytes("room:1", b"text").await;
    let binary = b"\x02\x06\x07room:1messagetext".to_vec();
    assert_eq!(client.next().await, Arrived::Binary(binary));
}

#[tokio::test]
async fn a_broadcast_can_leave_out_a_client() {
    let gateway = Gateway::open(&format!("{ON}[channel]\npresence = true\n")).await;
    let mut clients = [
        Phoenix::connect(&gateway).await,
        Phoenix::connect(&gateway).await,
    ];
    clients[0].join("room:1", json!({})).await;
    let presence = gateway.api("presence", &json!({"channel": "room:1"})).await;
    let first = presence["presence"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    clients[1].join("room:1", json!({})).await;
    let tags = json!({"event": "typing", "except": first});
    let publication = json!({"channel": "room:1", "data": 1, "tags": tags});
    gateway.api("publish", &publication).await;
    let [first, second] = &mut clients;
    assert_eq!(
        second.json().await,
        json!([null, null, "room:1", "typing", 1])
    );
    first.expect_nothing().await;
}
