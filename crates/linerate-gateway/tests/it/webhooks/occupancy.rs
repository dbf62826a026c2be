//! Webhooks are told which channels have subscribers and members, on any node.

use std::time::{Duration, Instant};

use linerate::Client;
use linerate_testkit::server::RedisServer;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Receiver, kinds, services::nats, webhook};
use crate::support::{Gateway, Json, config, in_time, token};

/// How long a channel must have no subscribers before it is reported.
const VACANT_MIN: Duration = Duration::from_secs(3);

const PLACES: &str = "events = [\"occupied\", \"vacated\", \"member_added\", \"member_removed\"]\n";

async fn receiver(more: &str) -> (Receiver, String) {
    let receiver = Receiver::default();
    let address = receiver.serve(([127, 0, 0, 1], 0).into()).await;
    (receiver, webhook(address, &format!("{PLACES}{more}")))
}

async fn unsubscribe(client: &mut Json, channel: &str) {
    let command = format!(r#"{{"id":3,"unsubscribe":{{"channel":"{channel}"}}}}"#);
    client.ask(&command).await;
}

/// Returns the kind and the channel of each event.
fn places(events: &[Value]) -> Vec<(&str, &str)> {
    let channels = events
        .iter()
        .map(|event| event["channel"].as_str().unwrap());
    kinds(events).into_iter().zip(channels).collect()
}

#[tokio::test]
async fn a_channel_is_occupied_from_its_first_subscriber_to_its_last() {
    let (receiver, toml) = receiver("channels = [\"news*\"]").await;
    let gateway = Gateway::start(config(&toml)).await;
    let mut clients = [Json::connect(&gateway).await, Json::connect(&gateway).await];
    for client in &mut clients {
        client.subscribe("news").await;
        client.subscribe("other").await;
    }
    let events = receiver.count(1).await;
    assert_eq!(places(&events), [("occupied", "news")]);
    assert!(events[0]["client"].is_null() && events[0]["user"].is_null());
    // A client that returns soon is not noticed.
    let [one, other] = &mut clients;
    unsubscribe(other, "news").await;
    unsubscribe(one, "news").await;
    sleep(VACANT_MIN / 3).await;
    one.subscribe("news").await;
    sleep(VACANT_MIN).await;
    assert_eq!(receiver.events().len(), 1);
    let since = Instant::now();
    drop(clients);
    let events = receiver.count(2).await;
    assert!(since.elapsed() >= VACANT_MIN, "{:?}", since.elapsed());
    assert_eq!(places(&events), [("occupied", "news"), ("vacated", "news")]);
    let mut client = Json::connect(&gateway).await;
    client.subscribe("news").await;
    let events = receiver.count(3).await;
    assert_eq!(places(&events)[2], ("occupied", "news"));
}

#[tokio::test]
async fn a_user_is_a_member_with_the_first_of_several_clients() {
    let (receiver, toml) = receiver("channels = [\"room\"]\n[channel]\npresence = true\n").await;
    let gateway = Gateway::guarded(&toml).await;
    let claims = json!({"sub": "ada", "channels": ["room"]});
    let one = Json::connect_with(&gateway, &token(&claims)).await;
    let mut events = receiver.count(2).await;
    events.sort_by_key(|event| event["event"].to_string());
    assert_eq!(
        places(&events),
        [("member_added", "room"), ("occupied", "room")]
    );
    assert_eq!(events[0]["user"], "ada");
    let other = Json::connect_with(&gateway, &token(&claims)).await;
    drop(one);
    sleep(VACANT_MIN + Duration::from_millis(500)).await;
    assert_eq!(receiver.events().len(), 2);
    drop(other);
    let mut events = receiver.count(4).await.split_off(2);
    events.sort_by_key(|event| event["event"].to_string());
    assert_eq!(
        places(&events),
        [("member_removed", "room"), ("vacated", "room")]
    );
    assert_eq!(events[0]["user"], "ada");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_several_nodes_tells_of_a_channel() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let (receiver, toml) = receiver("").await;
    let start = || Gateway::start_on(&redis.url(), config(&toml));
    let gateways = [start(), start(), start()];
    let mut clients = Vec::new();
    for gateway in &gateways {
        let mut client = Json::connect(gateway).await;
        client.subscribe("news").await;
        clients.push(client);
    }
    let events = receiver.count(1).await;
    assert_eq!(places(&events), [("occupied", "news")]);
    let last = clients.pop();
    drop(clients);
    sleep(VACANT_MIN + Duration::from_millis(500)).await;
    assert_eq!(receiver.events().len(), 1);
    drop(last);
    let events = receiver.count(2).await;
    assert_eq!(places(&events)[1], ("vacated", "news"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_channels_of_a_node_that_has_ended_are_vacated_by_another() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let (receiver, toml) = receiver("").await;
    let start = || Gateway::start_on(&redis.url(), config(&toml));
    let (staying, gone) = (start(), start());
    let mut client = Json::connect(&staying).await;
    client.subscribe("both").await;
    receiver.count(1).await;
    let mut other = Json::connect(&gone).await;
    other.subscribe("both").await;
    other.subscribe("theirs").await;
    receiver.count(2).await;
    // Without a farewell.
    drop(gone);
    let events = receiver.count(3).await;
    assert_eq!(
        places(&events),
        [
            ("occupied", "both"),
            ("occupied", "theirs"),
            ("vacated", "theirs")
        ]
    );
}

/// A client stays while the broker restarts without what it had stored, and leaves afterwards.
async fn survives_a_broker_without_memory(url: &str, restart: impl AsyncFnOnce()) {
    let (receiver, toml) = receiver("").await;
    let start = || Gateway::start_on(url, config(&toml));
    let gateways = [start(), start()];
    let mut clients = Vec::new();
    for gateway in &gateways {
        // The subscriptions of raw clients do not end with the link to the broker.
        clients.push(gateway.raw(&Client::new(), "channel=news").await);
    }
    receiver.count(1).await;
    restart().await;
    // It may be told again that the channel is occupied, but not that it is vacant.
    sleep(VACANT_MIN + Duration::from_secs(9)).await;
    let events = receiver.events();
    assert!(
        places(&events)
            .iter()
            .all(|place| *place == ("occupied", "news")),
        "{events:?}"
    );
    let told = events.len();
    drop(clients);
    let events = receiver.count(told + 1).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(places(&receiver.events()), places(&events));
    assert_eq!(places(&events).last(), Some(&("vacated", "news")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_that_loses_its_memory_is_told_again() {
    let Some(mut redis) = RedisServer::start() else {
        return;
    };
    let url = redis.url();
    survives_a_broker_without_memory(&url, async || {
        redis.kill();
        sleep(Duration::from_millis(500)).await;
        redis.restart();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_that_loses_its_memory_is_told_again() {
    let Some(mut nats) = nats(true) else {
        return;
    };
    let url = format!("nats://{}", nats.address());
    survives_a_broker_without_memory(&url, async || {
        nats.kill();
        sleep(Duration::from_millis(500)).await;
        nats.restart();
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_is_added_is_told_of_channels_that_are_occupied() {
    let gateway = Gateway::open("").await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("news").await;
    let (receiver, toml) = receiver("").await;
    gateway.reload(config(&toml));
    let events = receiver.count(1).await;
    assert_eq!(places(&events), [("occupied", "news")]);
    drop(client);
    let events = receiver.count(2).await;
    assert_eq!(places(&events)[1], ("vacated", "news"));
}

#[tokio::test]
async fn a_gateway_that_ends_alone_tells_that_its_channels_are_vacant() {
    let (receiver, toml) = receiver("").await;
    let gateway = Gateway::start(config(&toml)).await;
    let mut client = Json::connect(&gateway).await;
    client.subscribe("news").await;
    receiver.count(1).await;
    in_time(gateway.shut_down()).await;
    let events = receiver.events();
    assert_eq!(places(&events), [("occupied", "news"), ("vacated", "news")]);
}
