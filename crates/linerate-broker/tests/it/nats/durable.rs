//! Tests of streams that others delete, or that go back in time.

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use futures_util::TryStreamExt;
use linerate_broker::{BrokerError, BrokerOptions, GapReason, HistoryRequest, StreamOptions};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep};

use super::NatsServer;
use crate::contract::{DURABLE, Node, name, publish};

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
    // Another client publishes as soon as the server is up.
    let plain = async_nats::connect(server.url()).await.unwrap();
    for _ in 0..5 {
        plain.publish("durable", "other".into()).await.unwrap();
    }
    plain.flush().await.unwrap();
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
async fn streams_of_idle_channels_are_deleted() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let streams = streams(&server).await;
    for subject in ["theirs", "short", "long"] {
        let config = async_nats::jetstream::stream::Config {
            name: subject.to_owned(),
            subjects: vec![format!("other.{subject}")],
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
    let names = async || -> Vec<String> {
        let names = streams.stream_names();
        names.try_collect().await.unwrap()
    };
    let start = Instant::now();
    while names().await.len() > 4 {
        assert!(start.elapsed() < PATIENCE, "{:?}", names().await);
        sleep(Duration::from_millis(50)).await;
    }
    let left = names().await;
    assert!(
        left.iter().any(|name| name.starts_with("linerate-long")),
        "{left:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_of_a_foreign_stream_is_refused() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let config = async_nats::jetstream::stream::Config {
        name: "THEIRS".to_owned(),
        subjects: vec!["orders.>".to_owned()],
        ..Default::default()
    };
    streams(&server).await.create_stream(config).await.unwrap();
    let node = Node::of(&server).await;
    let channel = name("orders.new");
    let refused = node.broker.subscribe(&channel, DURABLE).await;
    let Err(BrokerError::Refused { reason }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("overlap"), "{reason}");
    let refused = node.broker.publish(&channel, publish("x", DURABLE)).await;
    assert!(matches!(refused, Err(BrokerError::Refused { .. })));
    // A refused request changes nothing.
    node.subscribe("durable", DURABLE).await;
    node.publish("durable", "x", DURABLE).await;
    node.recorder.publications("durable", 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_nats_client_can_publish_in_a_durable_channel() {
    let Some(server) = NatsServer::start() else {
        return;
    };
    let node = Node::of(&server).await;
    node.subscribe("durable", DURABLE).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("X-Trace", "1");
    let sent = client
        .publish_with_headers("durable", headers, "\0raw".into())
        .await;
    sent.unwrap();
    client.publish("durable", "{}".into()).await.unwrap();
    let received = node.recorder.publications("durable", 2).await;
    assert_eq!(received[0].payload(), "\0raw");
    assert_eq!(received[1].offset(), 2);
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
    let full = "accounts { A: { jetstream: { max_streams: 1, max_file: 1073741824, max_mem: 1048576 }, \
                users: [{user: a, password: a}] } }\nno_auth_user: a";
    let Some(server) = NatsServer::with(full) else {
        return;
    };
    let node = Node::of(&server).await;
    node.publish("first", "x", DURABLE).await;
    let channel = name("second");
    let published = node.broker.publish(&channel, publish("x", DURABLE)).await;
    assert!(published.is_err(), "{published:?}");
    assert!(node.broker.probe_write().await.is_err());
    delete_streams(&server).await;
    node.broker.probe_write().await.unwrap();
}
