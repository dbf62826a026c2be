//! Tests of streams that others delete, or that go back in time.

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use linerate_broker::{BrokerError, BrokerOptions, GapReason, HistoryRequest, StreamOptions};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep, timeout};

use super::NatsServer;
use crate::contract::{DURABLE, Node, PLAIN, name, publish};

async fn streams(server: &NatsServer) -> async_nats::jetstream::Context {
    async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap())
}

async fn delete_streams(server: &NatsServer) {
    let streams = streams(server).await;
    let names: Vec<String> = streams.stream_names().try_collect().await.unwrap();
    for name in names {
        streams.delete_stream(name).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_stream_restarts_in_another_epoch() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    node.subscribe("durable", DURABLE).await;
    let mut before = None;
    for _ in 0..3 {
        before = node.publish("durable", "before", DURABLE).await.position;
    }
    node.recorder.publications("durable", 3).await;
    delete_streams(&server).await;
    let after = node
        .publish("durable", "after", DURABLE)
        .await
        .position
        .unwrap();
    assert_ne!(before.unwrap().epoch, after.epoch);
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::StreamReset);
    node.publish("durable", "and on", DURABLE).await;
    let received = node.recorder.until("durable", "and on").await;
    let last = received.last().unwrap().position().unwrap();
    assert_eq!((&last.epoch, last.offset), (&after.epoch, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn g09_a_stream_that_went_back_in_time_gets_another_epoch() {
    let Some(mut server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    node.subscribe("durable", DURABLE).await;
    for _ in 0..3 {
        node.publish("durable", "kept", DURABLE).await;
    }
    server.kill();
    let (streams, copy) = (
        server.directory().join("js"),
        server.directory().join("copy"),
    );
    copy_all(&streams, &copy);
    server.restart();
    node.recorder.link(true).await;
    let mut lost = None;
    for _ in 0..4 {
        lost = node.publish("durable", "lost", DURABLE).await.position;
    }
    node.recorder.publications("durable", 7).await;
    server.kill();
    node.recorder.link(false).await;
    fs::remove_dir_all(&streams).unwrap();
    copy_all(&copy, &streams);
    server.restart();
    // Another node publishes as soon as the server is up.
    let other = Node::of(&server).await;
    for _ in 0..5 {
        other.publish("durable", "other", DURABLE).await;
    }
    node.recorder.link(true).await;
    let gap = node.recorder.gap().await;
    assert_eq!(gap.reason, GapReason::StreamReset);
    let lost = lost.unwrap();
    let request = HistoryRequest {
        since: Some(lost.clone()),
        ..HistoryRequest::default()
    };
    let channel = name("durable");
    let history = node
        .broker
        .history(&channel, DURABLE, request)
        .await
        .unwrap();
    assert!(!history.is_contiguous);
    assert_ne!(history.newest.epoch, lost.epoch);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_stored_for_nodes_are_deleted_when_they_expire() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    for (id, expires_at) in [
        ("over", Some(1)),
        ("good", Some(4_000_000_000)),
        ("ever", None),
    ] {
        let kept = node.broker.keep(id, Bytes::from(id), expires_at);
        kept.await.unwrap();
    }
    let mut kept = node.broker.kept().await.unwrap();
    kept.sort();
    assert_eq!(kept, ["ever", "good"]);
    let streams = streams(&server).await;
    let names: Vec<String> = streams.stream_names().try_collect().await.unwrap();
    let mut stream = streams.get_stream(&names[0]).await.unwrap();
    assert_eq!(stream.info().await.unwrap().state.messages, 2);
    let again = Bytes::from_static(b"again");
    node.broker.keep("over", again, None).await.unwrap();
    assert_eq!(node.broker.kept().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_of_options_that_are_not_used_are_deleted() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let streams = streams(&server).await;
    // Earlier versions had a stream for each channel.
    for (name, description) in [("theirs", "x"), ("old", "linerate 0123456789abcdef")] {
        let config = async_nats::jetstream::stream::Config {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            subjects: vec![format!("other.{name}")],
            ..Default::default()
        };
        streams.create_stream(config).await.unwrap();
    }
    let ttl = Duration::from_millis(200);
    let short = StreamOptions { ttl, ..DURABLE };
    let options = BrokerOptions {
        meta_ttl: Duration::from_secs(1),
        ..BrokerOptions::default()
    };
    let node = Node::with(&server, options).await;
    node.publish("short", "x", short).await;
    node.publish("long", "x", DURABLE).await;
    let has = async |part: &str| {
        let names: Vec<String> = streams.stream_names().try_collect().await.unwrap();
        names.iter().any(|name| name.contains(part))
    };
    let start = Instant::now();
    while has("stored-100-200-").await || has("old").await {
        assert!(start.elapsed() < PATIENCE);
        sleep(Duration::from_millis(50)).await;
    }
    assert!(has("stored-100-60000-").await);
    assert!(has("theirs").await);
    // It is created again.
    node.publish("short", "y", short).await;
    assert!(has("stored-100-200-").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_stream_with_our_subjects_is_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let streams = streams(&server).await;
    for (name, subject) in [("THEIRS", "orders.>"), ("OURS", "_linerate.>")] {
        let config = async_nats::jetstream::stream::Config {
            name: name.to_owned(),
            subjects: vec![subject.to_owned()],
            ..Default::default()
        };
        streams.create_stream(config).await.unwrap();
    }
    let node = Node::of(&server).await;
    let channel = name("orders.new");
    let refused = node.broker.subscribe(&channel, DURABLE).await;
    let Err(BrokerError::Refused { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("overlap"), "{reason}");
    let refused = node.broker.publish(&channel, publish("x", DURABLE)).await;
    assert!(matches!(refused, Err(BrokerError::Refused { .. })));
    // A refused request changes nothing, and streams of applications may contain channels.
    streams.delete_stream("OURS").await.unwrap();
    node.subscribe("orders.new", DURABLE).await;
    node.publish("orders.new", "x", DURABLE).await;
    node.recorder.publications("orders.new", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nats_clients_and_patterns_receive_durable_publications() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut live = client
        .subscribe("_linerate.published.*.ticks.A")
        .await
        .unwrap();
    client.flush().await.unwrap();
    node.subscribe("ticks.*", PLAIN).await;
    node.publish("ticks.A", "durable", DURABLE).await;
    node.publish("ticks.B", "plain", PLAIN).await;
    let received = node.recorder.publications("ticks.*", 2).await;
    let sources: Vec<_> = received.iter().map(|one| one.source().unwrap()).collect();
    assert!(sources.contains(&&name("ticks.A")) && sources.contains(&&name("ticks.B")));
    let message = timeout(PATIENCE, live.next()).await.unwrap().unwrap();
    assert_eq!(message.payload, "durable");
    // What is published there by others is ignored.
    node.subscribe("ticks.A", DURABLE).await;
    for subject in [&message.subject[..], "ticks.A"] {
        client
            .publish(subject.to_owned(), "{}".into())
            .await
            .unwrap();
    }
    client.flush().await.unwrap();
    node.publish("ticks.A", "more", DURABLE).await;
    let received = node.recorder.publications("ticks.A", 1).await;
    assert_eq!(
        (received[0].offset(), &received[0].payload()[..]),
        (2, &b"more"[..])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_of_contending_nodes_have_no_holes() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let nodes = [Node::of(&server).await, Node::of(&server).await];
    nodes[0].subscribe("durable", DURABLE).await;
    let publishers = nodes.iter().enumerate().flat_map(|(number, node)| {
        (0..8).map(move |_| async move {
            let mut offsets = Vec::new();
            for _ in 0..50 {
                let payload = number.to_string();
                let published = node.publish("durable", payload, DURABLE).await;
                offsets.push(published.position.unwrap().offset);
            }
            offsets
        })
    });
    let offsets = futures_util::future::join_all(publishers).await;
    assert!(offsets.iter().all(|offsets| offsets.is_sorted()));
    let mut offsets = offsets.concat();
    offsets.sort_unstable();
    assert_eq!(offsets, (1..=800).collect::<Vec<_>>());
    let received = nodes[0].recorder.publications("durable", 800).await;
    let received: Vec<_> = received.iter().map(|one| one.offset()).collect();
    assert_eq!(received, offsets);
    assert!(nodes[0].recorder.gaps().is_empty());
    let all = HistoryRequest::default();
    let channel = name("durable");
    let history = nodes[1].broker.history(&channel, DURABLE, all);
    let history = history.await.unwrap();
    let stored: Vec<_> = history
        .publications
        .iter()
        .map(|one| one.offset())
        .collect();
    assert_eq!(stored, (701..=800).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn other_nodes_continue_offsets_after_everything_has_expired_or_was_removed() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let ttl = Duration::from_secs(1);
    let short = StreamOptions { ttl, ..DURABLE };
    let (one, other) = (Node::of(&server).await, Node::of(&server).await);
    for (channel, options) in [("expired", short), ("removed", DURABLE)] {
        one.subscribe(channel, options).await;
        for node in [&one, &other, &one] {
            node.publish(channel, "before", options).await;
        }
    }
    let removed = name("removed");
    other
        .broker
        .remove_history(&removed, DURABLE)
        .await
        .unwrap();
    sleep(ttl + Duration::from_millis(300)).await;
    for (channel, options) in [("expired", short), ("removed", DURABLE)] {
        let nodes = [&one, &other, &Node::of(&server).await];
        for (node, offset) in nodes.into_iter().zip(4..) {
            let published = node.publish(channel, "after", options).await;
            assert_eq!(published.position.unwrap().offset, offset, "{channel}");
        }
        one.recorder.publications(channel, 6).await;
    }
    assert!(one.recorder.gaps().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_moves_when_its_options_change() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let (one, other) = (Node::of(&server).await, Node::of(&server).await);
    let size_max = 10;
    let changed = StreamOptions {
        size_max,
        ..DURABLE
    };
    one.subscribe("durable", DURABLE).await;
    let mut epochs = Vec::new();
    for offset in [1, 3, 5, 7] {
        for (node, options, offset) in [(&one, DURABLE, offset), (&other, changed, offset + 1)] {
            let published = node.publish("durable", "x", options).await;
            let position = published.position.unwrap();
            assert_eq!(position.offset, offset);
            epochs.push(position.epoch);
        }
    }
    epochs.dedup();
    assert_eq!(epochs.len(), 1);
    one.recorder.publications("durable", 8).await;
    let history = one
        .broker
        .history(&name("durable"), DURABLE, HistoryRequest::default())
        .await
        .unwrap();
    assert_eq!(history.newest.offset, 8);
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to),
            false => drop(fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_full_server_refuses_writes_so_are_probing_writes() {
    let full = "accounts { A: { jetstream: { max_streams: 2, max_file: 1073741824, max_mem: 1048576 }, \
                users: [{user: a, password: a}] } }\nno_auth_user: a";
    let Some(server) = NatsServer::with(full) else {
        return;
    };
    let node = Node::of(&server).await;
    node.publish("first", "x", DURABLE).await;
    let others = StreamOptions {
        size_max: 5,
        ..DURABLE
    };
    let channel = name("second");
    let published = node.broker.publish(&channel, publish("x", others)).await;
    assert!(published.is_err(), "{published:?}");
    assert!(node.broker.probe_write().await.is_err());
    delete_streams(&server).await;
    node.broker.probe_write().await.unwrap();
}
