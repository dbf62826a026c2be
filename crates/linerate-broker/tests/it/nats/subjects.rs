//! Tests of channels as subjects, and of publishers that do not use linerate.

use std::time::Duration;

use linerate_broker::{BrokerError, BrokerOptions};
use tokio::time::timeout;

use super::NatsServer;
use crate::contract::{Node, PLAIN, name, publish};

#[tokio::test(flavor = "multi_thread")]
async fn publishers_can_be_plain_nats_clients() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    node.subscribe("ticks.>", PLAIN).await;
    node.subscribe("ticks.AAPL", PLAIN).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("X-Trace", "1");
    let payload = bytes::Bytes::from_static(b"{\"a\":1}\n\xff");
    for subject in ["ticks.AAPL", "ticks.AAPL.1m"] {
        let sent = client.publish_with_headers(subject, headers.clone(), payload.clone());
        sent.await.unwrap();
    }
    let received = node.recorder.publications("ticks.>", 2).await;
    assert_eq!(received[0].payload(), &payload);
    assert_eq!(received[1].source(), Some(&name("ticks.AAPL.1m")));
    let received = node.recorder.payloads("ticks.AAPL", 1).await;
    assert_eq!(received, [payload]);
}

#[tokio::test(flavor = "multi_thread")]
async fn subscribers_can_be_plain_nats_clients() {
    use futures_util::StreamExt;
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut subscriber = client.subscribe("news").await.unwrap();
    // A flush only writes. The server processes the commands of one connection in order, so it has
    // subscribed by the time this message comes back.
    let mut settled = client.subscribe("settled").await.unwrap();
    client.publish("settled", "".into()).await.unwrap();
    let patience = Duration::from_secs(30);
    timeout(patience, settled.next()).await.unwrap().unwrap();
    node.publish("news", "{}", PLAIN).await;
    let message = timeout(patience, subscriber.next()).await.unwrap().unwrap();
    assert_eq!(message.payload, "{}");
    assert!(message.headers.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn services_with_different_prefixes_are_isolated() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let options = |prefix: &str| BrokerOptions {
        prefix: prefix.to_owned(),
        ..BrokerOptions::default()
    };
    let one = Node::with(&server, options("one.")).await;
    let two = Node::with(&server, options("two.")).await;
    for node in [&one, &two] {
        node.subscribe(">", PLAIN).await;
        node.subscribe("news", PLAIN).await;
    }
    one.publish("news", "1", PLAIN).await;
    two.publish("news", "2", PLAIN).await;
    two.broker.send_control(None, "c".into()).await.unwrap();
    for (node, payload) in [(&one, "1"), (&two, "2")] {
        assert_eq!(node.recorder.payloads("news", 1).await, [payload]);
        let received = node.recorder.publications(">", 1).await;
        assert_eq!(received[0].source(), Some(&name("news")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn channels_that_are_not_subjects_are_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    for channel in [".a", "a.", "a..b", "$SYS.x", "_INBOX.x", "a.*b", "*", ">"] {
        let refused = node.broker.subscribe(&name(channel), PLAIN).await;
        assert!(
            matches!(refused, Err(BrokerError::Refused { .. })),
            "{channel}"
        );
    }
    for channel in ["a.", "a.*", "$JS.API.STREAM.NAMES", "_linerate.control"] {
        let refused = node
            .broker
            .publish(&name(channel), publish("x", PLAIN))
            .await;
        assert!(
            matches!(refused, Err(BrokerError::Refused { .. })),
            "{channel}"
        );
    }
}
