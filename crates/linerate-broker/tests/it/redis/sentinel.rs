//! Tests of a master, a replica, and a sentinel that fails over between them.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use linerate_broker::{BrokerError, BrokerOptions, Redis};
use linerate_testkit::{PATIENCE, server::RedisServer};

use crate::{
    contract::{DURABLE, Node, PLAIN, name, publish},
    recorder::Recorder,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_new_master_is_found_after_a_failover() {
    let Some(mut master) = RedisServer::start() else {
        return;
    };
    let port = master.port().to_string();
    let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]).unwrap();
    wait(|| {
        replica
            .cli(&["INFO", "replication"])
            .contains("master_link_status:up")
    });
    let sentinel = RedisServer::start_sentinel("main", &master).unwrap();
    wait(|| {
        let known = sentinel.cli(&["SENTINEL", "REPLICAS", "main"]);
        known.contains(&replica.port().to_string())
    });
    let url = format!("redis+sentinel://127.0.0.1:1,{}/main", sentinel.address());
    let recorder = Recorder::new();
    let options = BrokerOptions {
        command_timeout: Duration::from_secs(2),
        ..BrokerOptions::default()
    };
    let redis = Redis::new(&url, options, recorder.clone()).unwrap();
    recorder.link(true).await;
    let node = Node {
        broker: Arc::new(redis),
        recorder,
    };
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        node.publish(channel, "before", options).await;
        node.recorder.until(channel, "before").await;
    }
    master.kill();
    node.recorder.link(false).await;
    let gap = node.recorder.gap().await;
    assert!(gap.lasted >= Duration::from_millis(500), "{gap:?}");
    node.recorder.link(true).await;
    let channel = name("durable");
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = node
        .broker
        .publish(&channel, publish("after", DURABLE))
        .await
    {
        let is_away = matches!(
            error,
            BrokerError::Away { .. } | BrokerError::Timeout { .. }
        );
        assert!(is_away && Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let received = node.recorder.until("durable", "after").await;
    let epoch = |at: usize| received[at].position().unwrap().epoch.clone();
    assert_ne!(epoch(0), epoch(received.len() - 1));
    node.publish("plain", "after", PLAIN).await;
    node.recorder.until("plain", "after").await;
    assert!(
        replica
            .cli(&["PUBSUB", "CHANNELS", "plain"])
            .contains("plain")
    );
}

#[tokio::test]
async fn an_unknown_master_is_reported() {
    let Some(master) = RedisServer::start() else {
        return;
    };
    let sentinel = RedisServer::start_sentinel("main", &master).unwrap();
    let url = format!("redis+sentinel://{}/other", sentinel.address());
    let options = BrokerOptions {
        command_timeout: Duration::from_secs(1),
        ..BrokerOptions::default()
    };
    let redis = Redis::new(&url, options, Recorder::new()).unwrap();
    let node = Node {
        broker: Arc::new(redis),
        recorder: Recorder::new(),
    };
    let published = node.broker.publish(&name("a"), publish("x", PLAIN)).await;
    let error = published.unwrap_err().to_string();
    assert!(error.contains("does not know the master"), "{error}");
}

fn wait(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
    }
}
