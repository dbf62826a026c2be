//! Subscribing, and continuing from an earlier position.

use std::sync::Arc;

use linerate_broker::HistoryRequest;
use linerate_hub::{Conflate, Epoch, JsonPointer, Publication, StreamPosition};
use tokio::sync::Notify;

use super::{Bus, PLAIN, channel, connect, node_in_memory, node_on, publish, subscription, until};
use crate::node::{Node, Recovery, StartPosition, SubscribeError};

async fn newest(node: &Node) -> StreamPosition {
    let position_only = HistoryRequest {
        limit: Some(0),
        ..HistoryRequest::default()
    };
    let history = node
        .histories
        .read(&channel("news"), PLAIN, position_only)
        .await;
    history.unwrap().newest
}

#[tokio::test]
async fn what_was_missed_is_in_the_reply() {
    let (node, worker) = node_in_memory();
    let (client, memo) = connect(&worker, "", "c");
    for number in 1..=3 {
        publish(&node, "news", &number.to_string()).await;
    }
    let seen = newest(&node).await;
    for number in 4..=6 {
        publish(&node, "news", &number.to_string()).await;
    }
    let mut wanted = subscription("news");
    wanted.from = StartPosition::After(seen);
    let subscribed = worker.subscribe(client, wanted).await.unwrap();
    assert!(subscribed.is_recovered);
    let missed: Vec<_> = subscribed
        .publications
        .iter()
        .map(|p| p.payload().clone())
        .collect();
    assert_eq!(missed, ["4", "5", "6"]);
    assert_eq!(subscribed.position.unwrap().offset, 6);
    publish(&node, "news", "7").await;
    assert_eq!(memo.payloads(1).await, ["7"]);
}

#[tokio::test]
async fn what_was_missed_and_replaced_is_not_in_the_reply() {
    let (node, worker) = node_in_memory();
    publish(&node, "news", "0").await;
    let seen = newest(&node).await;
    for payload in [r#"{"k":1}"#, r#"{"k":2}"#, r#"{"k":1}"#, r#"{"k":3}"#] {
        publish(&node, "news", payload).await;
    }
    let by_key = Conflate::LatestPerKey(JsonPointer::new("/k").unwrap());
    for (conflate, reply_bytes_max, replied, streamed) in [
        (Conflate::Latest, 1_000, &[5][..], 0),
        (by_key.clone(), 1_000, &[3, 4, 5], 0),
        // What does not fit into the reply follows it.
        (by_key, 100, &[3], 2),
    ] {
        let (client, memo) = connect(&worker, "", "c");
        let mut wanted = subscription("news");
        wanted.options.conflate = Some(conflate);
        wanted.from = StartPosition::After(seen.clone());
        let prepared = worker.prepare(client, wanted).await.unwrap();
        let subscribed = prepared.finish(reply_bytes_max).unwrap();
        assert!(subscribed.is_recovered);
        let offsets = subscribed.publications.iter().map(Publication::offset);
        assert_eq!(offsets.collect::<Vec<_>>(), replied);
        let payloads = [r#"{"k":1}"#, r#"{"k":3}"#];
        assert_eq!(memo.payloads(streamed).await, payloads[..streamed]);
        worker.disconnect(client);
    }
}

#[tokio::test]
async fn what_was_missed_is_streamed() {
    let (node, worker) = node_in_memory();
    let (client, memo) = connect(&worker, "", "c");
    publish(&node, "news", "1").await;
    let seen = newest(&node).await;
    publish(&node, "news", "2").await;
    let mut wanted = subscription("news");
    wanted.from = StartPosition::After(seen);
    wanted.recovery = Recovery::Stream {
        publications_max: 10,
    };
    let subscribed = worker.subscribe(client, wanted).await.unwrap();
    assert!(subscribed.is_recovered && subscribed.publications.is_empty());
    publish(&node, "news", "3").await;
    assert_eq!(memo.payloads(2).await, ["2", "3"]);
}

#[tokio::test]
async fn a_cache_holds_the_newest_publication_for_who_has_not_got_it() {
    let (node, worker) = node_in_memory();
    for number in 1..=3 {
        publish(&node, "news", &number.to_string()).await;
    }
    let mut seen = StreamPosition {
        epoch: Epoch::new(""),
        offset: 0,
    };
    for expected in [&["3"][..], &[]] {
        let (client, memo) = connect(&worker, "", "c");
        let mut wanted = subscription("news");
        wanted.from = StartPosition::Cached(seen);
        let subscribed = worker.subscribe(client, wanted).await.unwrap();
        assert!(subscribed.is_recovered);
        let newest = subscribed.publications.iter();
        let newest: Vec<_> = newest.map(|found| found.payload().clone()).collect();
        assert_eq!(newest, expected);
        seen = subscribed.position.unwrap();
        assert_eq!(seen.offset, 3);
        assert!(memo.payloads(0).await.is_empty());
        worker.disconnect(client);
    }
    let (client, memo) = connect(&worker, "", "c");
    let mut wanted = subscription("news");
    wanted.from = StartPosition::Cached(seen);
    wanted.recovery = Recovery::Stream {
        publications_max: 10,
    };
    publish(&node, "news", "4").await;
    publish(&node, "news", "5").await;
    assert!(worker.subscribe(client, wanted).await.unwrap().is_recovered);
    publish(&node, "news", "6").await;
    assert_eq!(memo.payloads(2).await, ["5", "6"]);
}

#[tokio::test]
async fn what_cannot_be_recovered_is_said_to_be_so() {
    let (node, worker) = node_in_memory();
    publish(&node, "news", "1").await;
    let seen = newest(&node).await;
    for number in 0..10 {
        publish(&node, "news", &number.to_string()).await;
    }
    let other_epoch = StreamPosition {
        epoch: Epoch::new("other"),
        ..seen.clone()
    };
    for (since, publications_max) in [(other_epoch, 100), (seen, 9)] {
        let (client, _) = connect(&worker, "", "c");
        let mut wanted = subscription("news");
        wanted.from = StartPosition::After(since);
        wanted.recovery = Recovery::Reply { publications_max };
        let subscribed = worker.subscribe(client, wanted).await.unwrap();
        assert!(!subscribed.is_recovered);
        assert!(subscribed.publications.is_empty());
        assert_eq!(subscribed.position.unwrap().offset, 11);
    }
}

/// G05: nothing is missing or repeated between the history and the live stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_missed_or_repeated_while_somebody_publishes() {
    let (node, worker) = node_in_memory();
    publish(&node, "news", "0").await;
    let start = newest(&node).await;
    let publisher = tokio::spawn({
        let node = node.clone();
        async move {
            for number in 1..=2_000 {
                publish(&node, "news", &number.to_string()).await;
                if number % 50 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
    });
    let mut since = start;
    let mut next = 1;
    while next <= 1_900 {
        let (client, memo) = connect(&worker, "", "c");
        let mut wanted = subscription("news");
        wanted.stream.size_max = 100;
        wanted.from = StartPosition::After(since.clone());
        let subscribed = worker.subscribe(client, wanted).await.unwrap();
        let position = subscribed.position.clone().unwrap();
        match subscribed.is_recovered {
            true => {
                for publication in &subscribed.publications {
                    assert_eq!(publication.payload(), &next.to_string());
                    next += 1;
                }
                assert_eq!(position.offset, next);
            }
            false => next = position.offset,
        }
        let live = if next <= 1_900 { 5 } else { 0 };
        for payload in memo.payloads(live).await {
            assert_eq!(payload, next.to_string());
            next += 1;
        }
        since.offset = next;
        worker.disconnect(client);
    }
    publisher.await.unwrap();
}

#[tokio::test]
async fn a_subscription_that_is_given_up_leaves_nothing_behind() {
    let bus = Arc::new(Bus::default());
    *bus.gate.lock() = Some(Arc::new(Notify::new()));
    let (node, workers) = node_on(&bus, 1);
    let worker = workers[0].clone();
    let (client, _) = connect(&worker, "", "c");
    let pending = tokio::spawn({
        let worker = worker.clone();
        async move {
            worker
                .subscribe(client, subscription("news"))
                .await
                .map(|_| ())
        }
    });
    until("asked", || bus.calls() == ["+news"]).await;
    assert_eq!(node.counts.subscriptions(), 1);
    pending.abort();
    _ = pending.await;
    assert_eq!(node.counts.subscriptions(), 0);
    assert!(node.dispatcher.routes.traffic().is_empty());
}

#[tokio::test]
async fn who_left_meanwhile_is_not_subscribed() {
    let bus = Arc::new(Bus::default());
    let gate = Arc::new(Notify::new());
    *bus.gate.lock() = Some(gate.clone());
    let (node, workers) = node_on(&bus, 1);
    let worker = workers[0].clone();
    let (client, _) = connect(&worker, "", "c");
    let pending = tokio::spawn({
        let worker = worker.clone();
        async move {
            worker
                .subscribe(client, subscription("news"))
                .await
                .map(|_| ())
        }
    });
    until("asked", || bus.calls() == ["+news"]).await;
    worker.disconnect(client);
    gate.notify_one();
    let error = pending.await.unwrap().unwrap_err();
    assert!(matches!(error, SubscribeError::Gone), "{error}");
    assert_eq!(node.counts.subscriptions(), 0);
}
