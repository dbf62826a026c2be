//! Tests of what subscribers are told when a server or the connection to it fails.

use std::{sync::Arc, time::Duration};

use linerate_broker::{
    Broker, BrokerError, BrokerOptions, GapReason, HistoryRequest, LinkState, Nats,
};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep};

use super::NatsServer;
use crate::{
    contract::{DURABLE, Node, PLAIN, name, publish},
    proxy::Proxy,
    recorder::Recorder,
};

/// The maximum time until a deaf link must be reported.
const DEAF_MAX: Duration = Duration::from_secs(5);

async fn node_at(url: &str, options: BrokerOptions) -> Node {
    let recorder = Recorder::new();
    let nats = Nats::new(url, options, Arc::clone(&recorder) as Arc<_>).unwrap();
    recorder.link(true).await;
    Node {
        broker: Arc::new(nats),
        recorder,
    }
}

async fn node_behind(proxy: &Proxy) -> Node {
    let url = format!("nats://127.0.0.1:{}", proxy.port());
    let options = BrokerOptions {
        dead_after: Duration::from_secs(3),
        ..BrokerOptions::default()
    };
    node_at(&url, options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_is_deaf_and_nothing_is_lost() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (node, other) = (Node::of(&server).await, Node::of(&server).await);
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        other.publish(channel, "1", options).await;
        node.recorder.publications(channel, 1).await;
    }
    server.pause();
    let paused = Instant::now();
    let deaf = node.recorder.link(false).await;
    assert!(deaf - paused < DEAF_MAX, "{:?}", deaf - paused);
    assert_eq!(node.broker.link(), LinkState::Deaf);
    sleep(Duration::from_secs(2)).await;
    server.resume();
    node.recorder.link(true).await;
    other.recorder.link(true).await;
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        other.publish(channel, "2", options).await;
        let received = node.recorder.publications(channel, 2).await;
        let positions = received.iter().map(|found| found.position().unwrap());
        let positions: Vec<_> = positions.collect();
        assert_eq!(positions[0].epoch, positions[1].epoch);
        assert_eq!(positions[1].offset, 2);
    }
    assert!(node.recorder.gaps().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_a_gap_in_plain_channels_and_none_in_durable_ones() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        for _ in 0..3 {
            node.publish(channel, "before", options).await;
        }
        node.recorder.publications(channel, 3).await;
    }
    let killed = Instant::now();
    server.kill();
    let deaf = node.recorder.link(false).await;
    assert!(deaf - killed < DEAF_MAX);
    let refused = node
        .broker
        .publish(&name("plain"), publish("x", PLAIN))
        .await;
    assert!(
        matches!(refused, Err(BrokerError::Away { .. })),
        "{refused:?}"
    );
    // Dialling is refused more than once in the meantime.
    sleep(Duration::from_secs(1)).await;
    server.restart();
    node.recorder.link(true).await;
    let gap = node.recorder.gap().await;
    assert_eq!(gap.channels.unwrap(), [name("plain")]);
    assert_eq!(gap.reason, GapReason::LinkLost);
    assert!(gap.lasted > Duration::from_secs(1) && gap.lasted < Duration::from_secs(15));
    node.publish("plain", "after", PLAIN).await;
    let plain = node.recorder.until("plain", "after").await;
    let (before, after) = (plain[0].position().unwrap(), plain[3].position().unwrap());
    assert_ne!(before.epoch, after.epoch);
    assert_eq!(after.offset, 1);
    node.publish("durable", "after", DURABLE).await;
    let durable = node.recorder.until("durable", "after").await;
    let offsets: Vec<u64> = durable.iter().map(|found| found.offset()).collect();
    assert_eq!(offsets, [1, 2, 3, 4]);
    assert_eq!(node.recorder.gaps().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_while_the_way_is_cut_arrives_in_durable_channels() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = Proxy::start(server.port()).await;
    let (node, other) = (node_behind(&proxy).await, Node::of(&server).await);
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
    }
    for round in 0..3 {
        proxy.cut();
        for number in 0..20 {
            let payload = (round * 20 + number).to_string();
            other.publish("durable", payload, DURABLE).await;
        }
        node.recorder
            .publications("durable", (round + 1) * 20)
            .await;
    }
    let received = node.recorder.payloads("durable", 60).await;
    let sent: Vec<_> = (0..60).map(|number| number.to_string()).collect();
    assert_eq!(received, sent);
    for gap in node.recorder.gaps() {
        assert_eq!(gap.channels.unwrap(), [name("plain")]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cutting_a_link_in_use_causes_no_errors() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = Proxy::start(server.port()).await;
    let node = Arc::new(node_behind(&proxy).await);
    let users = (0..4).map(|user| {
        let node = Arc::clone(&node);
        tokio::spawn(async move {
            for number in 0..20 {
                let channel = name(&format!("c{}", number % 7));
                let options = if user % 2 == 0 { PLAIN } else { DURABLE };
                // Each call may fail; none may hang or panic.
                _ = node.broker.subscribe(&channel, options).await;
                _ = node.broker.publish(&channel, publish("x", options)).await;
                let request = HistoryRequest::default();
                _ = node.broker.history(&channel, options, request).await;
                node.broker.unsubscribe(&channel).await;
            }
        })
    });
    let users: Vec<_> = users.collect();
    while users.iter().any(|user| !user.is_finished()) {
        proxy.cut();
        sleep(Duration::from_millis(300)).await;
    }
    for user in users {
        user.await.unwrap();
    }
    node.subscribe("after", DURABLE).await;
    node.publish("after", "x", DURABLE).await;
    node.recorder.publications("after", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_connection_is_replaced() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let proxy = Proxy::start(server.port()).await;
    let (node, other) = (node_behind(&proxy).await, Node::of(&server).await);
    node.subscribe("durable", DURABLE).await;
    proxy.silence();
    other.publish("durable", "1", DURABLE).await;
    node.recorder.link(false).await;
    node.recorder.link(true).await;
    assert_eq!(node.recorder.payloads("durable", 1).await, ["1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_does_not_read_is_told_what_it_missed() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (node, other) = (Node::of(&server).await, Node::of(&server).await);
    node.subscribe("plain", PLAIN).await;
    node.recorder.block();
    let large = vec![b'x'; 1_000_000];
    for number in 0..80 {
        other.publish("plain", large.clone(), PLAIN).await;
        if number == 10 {
            // Only incoming messages wait.
            node.subscribe("more", PLAIN).await;
        }
    }
    let start = Instant::now();
    while node.broker.link() != LinkState::Deaf {
        assert!(start.elapsed() < PATIENCE, "everything is waiting");
        sleep(Duration::from_millis(10)).await;
    }
    node.recorder.unblock();
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::Overflow);
    node.recorder.link(true).await;
    other.publish("plain", "after", PLAIN).await;
    node.recorder.until("plain", "after").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_start_after_its_node() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    server.kill();
    let recorder = Recorder::new();
    let ingest = Arc::clone(&recorder) as Arc<_>;
    let nats = Nats::new(&server.url(), BrokerOptions::default(), ingest).unwrap();
    assert_eq!(nats.link(), LinkState::Deaf);
    let channel = name("plain");
    let (subscribed, ()) = tokio::join!(nats.subscribe(&channel, PLAIN), async {
        sleep(Duration::from_millis(500)).await;
        server.restart();
    });
    subscribed.unwrap();
    nats.publish(&channel, publish("x", PLAIN)).await.unwrap();
    assert_eq!(recorder.payloads("plain", 1).await, ["x"]);
    assert!(recorder.gaps().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_does_not_wait_forever() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    server.kill();
    let options = BrokerOptions {
        command_timeout: Duration::from_millis(300),
        ..BrokerOptions::default()
    };
    let nats = Nats::new(&server.url(), options, Recorder::new()).unwrap();
    let error = nats.subscribe(&name("plain"), PLAIN).await.unwrap_err();
    assert!(matches!(error, BrokerError::Away { .. }), "{error}");
}
