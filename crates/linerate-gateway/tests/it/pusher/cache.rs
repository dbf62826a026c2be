//! Cache channels.

use serde_json::json;

use super::{APP, client::Pusher};
use crate::support::Gateway;

#[tokio::test]
async fn a_new_subscriber_gets_the_last_event() {
    let gateway = Gateway::open(&format!(
        "{APP}[channel]\nhistory_size = 0\nrecover = false\n"
    ))
    .await;
    for channel in ["cache-a", "private-cache-a", "private-encrypted-cache-a"] {
        let mut first = Pusher::connect(&gateway).await;
        first.subscribe(channel).await;
        assert_eq!(first.event(channel, "pusher:cache_miss").await, json!({}));
        for number in 1..=3 {
            gateway.publish(channel, &number.to_string()).await;
            assert_eq!(first.event(channel, "message").await, number);
        }
        let mut second = Pusher::connect(&gateway).await;
        second.subscribe(channel).await;
        assert_eq!(second.event(channel, "message").await, 3);
        gateway.publish(channel, "4").await;
        for client in [&mut first, &mut second] {
            assert_eq!(client.event(channel, "message").await, 4);
            client.expect_nothing().await;
        }
    }
}

#[tokio::test]
async fn the_last_event_of_a_presence_channel_follows_the_list_of_users() {
    let gateway = Gateway::open(APP).await;
    gateway.publish("presence-cache-a", "1").await;
    let mut client = Pusher::connect(&gateway).await;
    assert_eq!(client.join("presence-cache-a", "ann").await["count"], 1);
    assert_eq!(client.event("presence-cache-a", "message").await, 1);
}

#[tokio::test]
async fn the_last_event_is_forgotten_after_some_time() {
    let gateway = Gateway::open(&format!("{APP}cache_ttl_s = 1\n")).await;
    gateway.publish("cache-a", "1").await;
    tokio::time::sleep(std::time::Duration::from_millis(1_200)).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("cache-a").await;
    assert_eq!(
        client.event("cache-a", "pusher:cache_miss").await,
        json!({})
    );
}
