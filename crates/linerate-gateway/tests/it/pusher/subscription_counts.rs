//! How many subscriptions a channel has.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::{APP, client::Pusher};
use crate::support::{Gateway, config};

const COUNT: &str = "pusher_internal:subscription_count";

fn counting() -> String {
    format!("{APP}subscription_counts = true\n")
}

async fn counts(client: &mut Pusher, channel: &str, expected: u64) {
    let count = client.event(channel, COUNT).await;
    assert_eq!(count, json!({"subscription_count": expected}));
}

#[tokio::test]
async fn subscribers_are_told_how_many_there_are() {
    let gateway = Gateway::open(&counting()).await;
    for channel in ["news", "private-news", "private-encrypted-news"] {
        let mut ann = Pusher::connect(&gateway).await;
        ann.subscribe(channel).await;
        counts(&mut ann, channel, 1).await;
        let mut bob = Pusher::connect(&gateway).await;
        bob.subscribe(channel).await;
        counts(&mut bob, channel, 2).await;
        counts(&mut ann, channel, 2).await;
        bob.unsubscribe(channel).await;
        counts(&mut ann, channel, 1).await;
        bob.subscribe(channel).await;
        counts(&mut ann, channel, 2).await;
        counts(&mut bob, channel, 2).await;
        drop(bob);
        counts(&mut ann, channel, 1).await;
    }
}

#[tokio::test]
async fn a_count_is_data_in_a_string() {
    let gateway = Gateway::open(&counting()).await;
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("cache-news").await;
    assert_eq!(client.next().await["event"], "pusher:cache_miss");
    let expected = json!({
        "event": COUNT, "channel": "cache-news", "data": "{\"subscription_count\":1}",
    });
    assert_eq!(client.next().await, expected);
}

#[tokio::test]
async fn presence_channels_are_not_counted() {
    let gateway = Gateway::open(&counting()).await;
    let mut client = Pusher::connect(&gateway).await;
    client.join("presence-room", "ann").await;
    client.subscribe("news").await;
    // The first number that arrives is that of the channel which was subscribed to later.
    counts(&mut client, "news", 1).await;
    client.expect_nothing().await;
}

#[tokio::test]
async fn clients_that_change_quickly_are_told_together() {
    let gateway = Gateway::open(&counting()).await;
    let mut watcher = Pusher::connect(&gateway).await;
    watcher.subscribe("news").await;
    counts(&mut watcher, "news", 1).await;
    let mut client = Pusher::connect(&gateway).await;
    for _ in 0..200 {
        client.unsubscribe("other").await;
        client.ask("other", "", None).await;
        client.unsubscribe("news").await;
        client.ask("news", "", None).await;
    }
    let mut told = Vec::new();
    client
        .send(&json!({"event": "pusher:ping", "data": {}}))
        .await;
    while client.next().await["event"] != "pusher:pong" {}
    while told.last() != Some(&json!({"subscription_count": 2})) {
        told.push(watcher.event("news", COUNT).await);
    }
    watcher.expect_nothing().await;
    assert!(told.len() < 50, "{}", told.len());
}

#[tokio::test]
async fn counting_is_off_by_default_and_a_reload_switches_it() {
    let gateway = Gateway::open(APP).await;
    let mut ann = Pusher::connect(&gateway).await;
    ann.subscribe("news").await;
    gateway.reload(config(&format!("{}[auth]\nanonymous = true\n", counting())));
    counts(&mut ann, "news", 1).await;
    gateway.reload(config(&format!("{APP}[auth]\nanonymous = true\n")));
    let mut bob = Pusher::connect(&gateway).await;
    bob.subscribe("news").await;
    // A number would be told within 300 ms.
    sleep(Duration::from_millis(400)).await;
    bob.expect_nothing().await;
    ann.expect_nothing().await;
}
