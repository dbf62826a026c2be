//! Webhooks in the format of Pusher.

use std::time::Duration;

use ring::hmac;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Delivered, Receiver};
use crate::{
    pusher::{APP, client::Pusher},
    support::{Gateway, config, in_time},
};

const SECRET: &str = "the secret of the app";

/// Checks the signatures of all requests as Pusher's libraries do, and returns the events.
fn verified(batches: &[Delivered]) -> Vec<Value> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let verified = batches.iter().flat_map(|(headers, body)| {
        assert_eq!(headers["x-pusher-key"], "app-key");
        assert_eq!(headers["content-type"], "application/json");
        assert!(headers.get("webhook-signature").is_none());
        let signature = headers["x-pusher-signature"].to_str().unwrap();
        let digits = hmac::sign(&key, body);
        let digits = digits.as_ref().iter();
        let expected: String = digits.map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(signature, expected);
        let body: Value = serde_json::from_slice(body).unwrap();
        assert!(body["time_ms"].as_u64().unwrap() > 1_700_000_000_000);
        body["events"].as_array().unwrap().clone()
    });
    verified.collect()
}

#[tokio::test]
async fn channels_members_and_client_events_are_told_as_pusher_does() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let toml = format!(
        "{APP}\n[[webhook]]\nname = \"app\"\nurl = \"http://{address}/\"\nformat = \"pusher\"\n\
         batch_delay_ms = 10\nevents = [\"occupied\", \"vacated\", \"member_added\",\
         \"member_removed\", \"published\", \"cache_miss\"]\n"
    );
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Pusher::connect(&gateway).await;
    client.join("presence-room", "ada").await;
    client.subscribe("private-cache-news").await;
    let miss = client.next().await;
    assert_eq!(miss["event"], "pusher:cache_miss");
    client
        .trigger("presence-room", "client-typing", json!({"a": 1}))
        .await;
    let socket_id = client.socket_id.clone();
    let wait = async |count: usize| {
        in_time(async {
            loop {
                let events = verified(&receiver.batches());
                if events.len() >= count {
                    return events;
                }
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
    };
    let events = wait(5).await;
    for expected in [
        json!({"name": "channel_occupied", "channel": "presence-room"}),
        json!({"name": "member_added", "channel": "presence-room", "user_id": "ada"}),
        json!({"name": "channel_occupied", "channel": "private-cache-news"}),
        json!({"name": "cache_miss", "channel": "private-cache-news"}),
        json!({
            "name": "client_event", "channel": "presence-room", "event": "client-typing",
            "data": r#"{"a":1}"#, "socket_id": socket_id, "user_id": "ada",
        }),
    ] {
        assert!(events.contains(&expected), "{expected} {events:?}");
    }
    drop(client);
    let events = wait(8).await;
    for expected in [
        json!({"name": "channel_vacated", "channel": "presence-room"}),
        json!({"name": "member_removed", "channel": "presence-room", "user_id": "ada"}),
        json!({"name": "channel_vacated", "channel": "private-cache-news"}),
    ] {
        assert!(events[5..].contains(&expected), "{expected} {events:?}");
    }
}

#[tokio::test]
async fn the_numbers_of_subscriptions_are_told_as_pusher_does() {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    let toml = format!(
        "{APP}subscription_counts = true\n[[webhook]]\nname = \"app\"\n\
         url = \"http://{address}/\"\nformat = \"pusher\"\nbatch_delay_ms = 10\n\
         events = [\"subscription_count\"]\n"
    );
    let gateway = Gateway::start(config(&toml)).await;
    let wait = async |count: u64| {
        in_time(async {
            let expected = json!({
                "name": "subscription_count", "channel": "private-a", "subscription_count": count,
            });
            while verified(&receiver.batches()).last() != Some(&expected) {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    };
    let mut client = Pusher::connect(&gateway).await;
    client.subscribe("private-a").await;
    wait(1).await;
    let mut other = Pusher::connect(&gateway).await;
    other.subscribe("private-a").await;
    wait(2).await;
    drop(other);
    wait(1).await;
    drop(client);
    wait(0).await;
    let counts = verified(&receiver.batches()).into_iter();
    let counts: Vec<_> = counts
        .map(|event| event["subscription_count"].clone())
        .collect();
    assert_eq!(counts, [1, 2, 1, 0]);
}
