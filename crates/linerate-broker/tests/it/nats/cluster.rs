//! Tests of servers that store streams together and announce each other, and of the limits of
//! streams.

use std::sync::Arc;

use linerate_broker::{BrokerError, BrokerOptions, HistoryRequest, Nats};
use linerate_testkit::server::free_port;
use tokio::time::{Duration, Instant, sleep};

use super::NatsServer;
use crate::{
    contract::{DURABLE, Node, name, publish},
    recorder::Recorder,
};

/// The maximum time for a cluster to elect a leader.
const ELECTION_MAX: Duration = Duration::from_secs(30);

/// Starts servers that know each other.
fn start_cluster() -> Option<Vec<NatsServer>> {
    let ports = [free_port(), free_port(), free_port()];
    let routes = ports.map(|port| format!("\"nats-route://127.0.0.1:{port}\""));
    let servers = ports.iter().map(|port| {
        NatsServer::with(&format!(
            "server_name: n{port}\ncluster {{ name: c, listen: \"127.0.0.1:{port}\", routes: [{}] }}",
            routes.join(", ")
        ))
    });
    servers.collect()
}

/// Publishes as soon as there is a leader.
async fn publish_when_led(node: &Node, payload: &str) -> u64 {
    let start = Instant::now();
    loop {
        let publish = publish(payload.to_owned(), DURABLE);
        match node.broker.publish(&name("durable"), publish).await {
            Ok(published) => return published.position.unwrap().offset,
            Err(error) => assert!(start.elapsed() < ELECTION_MAX, "{error}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replicated_stream_survives_the_loss_of_a_server() {
    let Some(mut servers) = start_cluster() else {
        return;
    };
    let options = BrokerOptions {
        stream_replicas: 3,
        ..BrokerOptions::default()
    };
    let recorder = Recorder::new();
    // The only server that is named here, and the one that will be killed.
    let broker = Nats::new(&servers[0].url(), options, recorder.clone()).unwrap();
    let node = Node {
        broker: Arc::new(broker),
        recorder,
    };
    node.recorder.link(true).await;
    assert_eq!(publish_when_led(&node, "first").await, 1);
    node.subscribe("durable", DURABLE).await;
    assert_eq!(publish_when_led(&node, "second").await, 2);
    node.recorder.until("durable", "second").await;
    servers[0].kill();
    node.recorder.link(false).await;
    node.recorder.link(true).await;
    publish_when_led(&node, "third").await;
    let received = node.recorder.until("durable", "third").await;
    let offsets: Vec<u64> = received.iter().map(|one| one.offset()).collect();
    let expected: Vec<u64> = (2..2 + offsets.len() as u64).collect();
    assert_eq!(
        offsets, expected,
        "a publication that was retried may be stored twice"
    );
    assert_eq!(node.recorder.gaps().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_replicas_than_servers_are_refused_with_the_reason() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let options = BrokerOptions {
        stream_replicas: 3,
        ..BrokerOptions::default()
    };
    let node = Node::with(&server, options).await;
    let refused = node.broker.subscribe(&name("durable"), DURABLE).await;
    let Err(BrokerError::Refused { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("replicas"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_holds_at_most_the_allowed_bytes() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let bounded = |stream_bytes_max| BrokerOptions {
        stream_bytes_max,
        ..BrokerOptions::default()
    };
    let node = Node::with(&server, bounded(64 << 10)).await;
    for _ in 0..9 {
        let payload = "x".repeat(15 << 10);
        node.publish("durable", payload, DURABLE).await;
    }
    let held = async |node: &Node| {
        let all = HistoryRequest::default();
        let history = node.broker.history(&name("durable"), DURABLE, all).await;
        history.unwrap().publications.len()
    };
    assert_eq!(held(&node).await, 4);
    // A later configuration applies to existing streams.
    let other = Node::with(&server, bounded(20 << 10)).await;
    assert_eq!(held(&other).await, 1);
}
