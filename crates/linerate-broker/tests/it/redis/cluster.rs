//! Tests of a cluster of three masters.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use linerate_broker::{Broker, BrokerError, BrokerOptions, Redis};
use linerate_testkit::{PATIENCE, server::RedisCluster};

use crate::{
    contract::{BARE, DURABLE, Node, PLAIN, Service, contract, name, publish},
    recorder::Recorder,
};

/// A part of a cluster that no other test uses.
struct Part<'a> {
    cluster: &'a RedisCluster,
    prefix: String,
}

impl<'a> Part<'a> {
    fn of(cluster: &'a RedisCluster) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("part{number}.");
        Self { cluster, prefix }
    }
}

impl Service for Part<'_> {
    const IS_SHARED: bool = true;
    // Patterns do not match sharded publications, which go to only one master.
    const PATTERN: (&'static str, &'static str, &'static str) = ("", "", "");

    async fn node(&self, options: BrokerOptions, recorder: Arc<Recorder>) -> Arc<dyn Broker> {
        let prefix = self.prefix.clone();
        let options = BrokerOptions { prefix, ..options };
        Arc::new(Redis::new(&self.cluster.url(), options, recorder).unwrap())
    }
}

/// Channels that are on the first, the second and the third master.
const CHANNELS: [&str; 3] = ["c", "a", "b"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_fulfils_the_contract() {
    let Some(cluster) = RedisCluster::start(0) else {
        return;
    };
    contract!(together Part::of(&cluster));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_moves_with_its_slot() {
    let Some(cluster) = RedisCluster::start(0) else {
        return;
    };
    let recorder = Recorder::new();
    let redis = Redis::new(&cluster.url(), BrokerOptions::default(), recorder.clone()).unwrap();
    recorder.link(true).await;
    let node = Node {
        broker: Arc::new(redis),
        recorder,
    };
    for channel in CHANNELS {
        node.subscribe(channel, PLAIN).await;
        node.publish(channel, "before", PLAIN).await;
        node.recorder.until(channel, "before").await;
    }
    // "a" is in slot 15495, on the third master.
    let slot = cluster.masters[0].cli(&["CLUSTER", "KEYSLOT", "a"]);
    let [to, from] = [1, 2].map(|master| cluster.masters[master].cli(&["CLUSTER", "MYID"]));
    // Only a master that knows of the migration claims the slot with a new epoch, so that no gossip
    // reverts it.
    let steps = [
        (1, "IMPORTING", &from),
        (2, "MIGRATING", &to),
        (1, "NODE", &to),
        (0, "NODE", &to),
        (2, "NODE", &to),
    ];
    for (master, what, whom) in steps {
        let set = ["CLUSTER", "SETSLOT", &slot, what, whom];
        assert_eq!(cluster.masters[master].cli(&set), "OK");
    }
    let gap = node.recorder.gap().await;
    assert_eq!(gap.channels, Some(vec![name("a")]));
    for channel in CHANNELS {
        node.publish(channel, "after", PLAIN).await;
        node.recorder.until(channel, "after").await;
    }
    assert_eq!(
        cluster.masters[1].cli(&["PUBSUB", "SHARDNUMSUB", "a"]),
        "a\n1"
    );
    assert_eq!(node.recorder.gaps().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_dies_is_replaced_by_its_replica() {
    let Some(mut cluster) = RedisCluster::start(1) else {
        return;
    };
    let recorder = Recorder::new();
    let options = BrokerOptions {
        command_timeout: Duration::from_secs(2),
        ..BrokerOptions::default()
    };
    let redis = Redis::new(&cluster.url(), options, recorder.clone()).unwrap();
    recorder.link(true).await;
    let node = Node {
        broker: Arc::new(redis),
        recorder,
    };
    // The first master serves the slots below 5461.
    let lost = (0..100).map(|number| format!("c{number}")).find(|channel| {
        let slot = cluster.masters[0].cli(&["CLUSTER", "KEYSLOT", channel]);
        slot.parse::<u32>().unwrap() < 5_461
    });
    let lost = lost.unwrap();
    for (channel, options) in [(lost.as_str(), DURABLE), ("a", DURABLE)] {
        node.subscribe(channel, options).await;
        node.publish(channel, "before", options).await;
        node.recorder.until(channel, "before").await;
    }
    let killed = Instant::now();
    cluster.masters[0].kill();
    node.recorder.link(false).await;
    assert!(killed.elapsed() < Duration::from_secs(5));
    let gap = node.recorder.gap().await;
    assert_eq!(gap.channels, Some(vec![name(&lost)]));
    node.recorder.link(true).await;
    let deadline = Instant::now() + PATIENCE;
    let (channel, late) = (name(&lost), || publish("after", DURABLE));
    while let Err(error) = node.broker.publish(&channel, late()).await {
        let is_away = matches!(
            error,
            BrokerError::Away { .. } | BrokerError::Timeout { .. }
        );
        assert!(is_away && Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let received = node.recorder.until(&lost, "after").await;
    let epochs = received
        .iter()
        .map(|found| found.position().unwrap().epoch.clone());
    let epochs: Vec<_> = epochs.collect();
    assert_ne!(epochs.first(), epochs.last());
    node.publish("a", "after", DURABLE).await;
    assert_eq!(node.recorder.until("a", "after").await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unsharded_cluster_uses_plain_publish() {
    let Some(cluster) = RedisCluster::start(0) else {
        return;
    };
    let url = format!("{}?sharded=false", cluster.url());
    let recorder = Recorder::new();
    let redis = Redis::new(&url, BrokerOptions::default(), recorder.clone()).unwrap();
    recorder.link(true).await;
    let node = Node {
        broker: Arc::new(redis),
        recorder,
    };
    for channel in CHANNELS {
        node.subscribe(channel, DURABLE).await;
    }
    node.subscribe("ticks:*", BARE).await;
    for (master, channel) in cluster
        .masters
        .iter()
        .zip(["ticks:a", "ticks:b", "ticks:c"])
    {
        master.cli(&["PUBLISH", channel, "hello"]);
    }
    node.recorder.payloads("ticks:*", 3).await;
    for channel in CHANNELS {
        let published = node.publish(channel, "durable", DURABLE).await;
        let received = node.recorder.publications(channel, 1).await;
        assert_eq!(received[0].position(), published.position.as_ref());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sharded_publish_by_others_arrives_byte_for_byte() {
    let Some(cluster) = RedisCluster::start(0) else {
        return;
    };
    let part = Part::of(&cluster);
    let node = Node::of(&part).await;
    for channel in CHANNELS {
        node.subscribe(channel, BARE).await;
        let wire = format!("{}{channel}", part.prefix);
        let published = cluster
            .masters
            .iter()
            .map(|master| master.cli(&["SPUBLISH", &wire, "hello"]));
        assert_eq!(published.filter(|answer| answer == "1").count(), 1);
        assert_eq!(node.recorder.payloads(channel, 1).await, ["hello"]);
    }
    assert!(!node.broker.is_pattern(&name("ticks:*")));
    // Keys can be in the same slot as any name.
    for odd in ["a}b", "{}x", "}{", "{user}.chat"] {
        let published = node.publish(odd, "x", DURABLE).await;
        assert_eq!(published.position.unwrap().offset, 1, "{odd}");
    }
}
