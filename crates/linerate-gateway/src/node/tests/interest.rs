//! A channel is subscribed only once at the broker, for all its subscribers.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::sync::Notify;

use super::{Bus, channel, connect, node_on, subscription, until};
use crate::node::SubscribeError;

#[tokio::test(start_paused = true)]
async fn all_who_want_a_channel_share_one_subscription() {
    let bus = Arc::new(Bus::default());
    let gate = Arc::new(Notify::new());
    *bus.gate.lock() = Some(gate.clone());
    let (_, workers) = node_on(&bus, 2);
    let mut tasks = Vec::new();
    for worker in workers.iter().cycle().take(20) {
        let worker = worker.clone();
        tasks.push(tokio::spawn(async move {
            let (client, _) = connect(&worker, "", "c");
            worker
                .subscribe(client, subscription("news"))
                .await
                .map(|_| ())
        }));
    }
    until("asked once", || bus.calls() == ["+news"]).await;
    assert!(
        tasks.iter().all(|task| !task.is_finished()),
        "no answer yet"
    );
    gate.notify_one();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(bus.calls(), ["+news"]);
}

#[tokio::test(start_paused = true)]
async fn a_channel_stays_subscribed_for_a_while() {
    let bus = Arc::new(Bus::default());
    let (_, workers) = node_on(&bus, 1);
    let worker = &workers[0];
    let (client, _) = connect(worker, "", "c");
    for _ in 0..3 {
        worker
            .subscribe(client, subscription("news"))
            .await
            .unwrap();
        worker.unsubscribe(client, &channel("news"));
        tokio::time::sleep(Duration::from_secs(4)).await;
    }
    assert_eq!(bus.calls(), ["+news"]);
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(bus.calls(), ["+news", "-news"]);
    worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    assert_eq!(bus.calls(), ["+news", "-news", "+news"]);
}

#[tokio::test(start_paused = true)]
async fn who_comes_while_a_channel_is_left_waits_and_subscribes_anew() {
    let bus = Arc::new(Bus::default());
    let (_, workers) = node_on(&bus, 1);
    let worker = workers[0].clone();
    let (client, _) = connect(&worker, "", "c");
    worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    worker.unsubscribe(client, &channel("news"));
    let gate = Arc::new(Notify::new());
    *bus.gate.lock() = Some(gate.clone());
    tokio::time::sleep(Duration::from_secs(12)).await;
    let again = tokio::spawn(async move {
        worker
            .subscribe(client, subscription("news"))
            .await
            .map(|_| ())
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        bus.calls(),
        ["+news"],
        "the channel is still being unsubscribed"
    );
    *bus.gate.lock() = None;
    gate.notify_one();
    again.await.unwrap().unwrap();
    assert_eq!(bus.calls(), ["+news", "-news", "+news"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_and_the_next_one_tries_again() {
    let bus = Arc::new(Bus::default());
    bus.is_away.store(true, Ordering::SeqCst);
    let (node, workers) = node_on(&bus, 1);
    let worker = &workers[0];
    let (client, _) = connect(worker, "", "c");
    let error = worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap_err();
    assert!(matches!(error, SubscribeError::Broker(_)), "{error}");
    assert_eq!(node.counts.subscriptions(), 0);
    assert!(node.dispatcher.routes.traffic().is_empty());
    bus.is_away.store(false, Ordering::SeqCst);
    worker
        .subscribe(client, subscription("news"))
        .await
        .unwrap();
    assert_eq!(bus.calls(), ["+news", "+news"]);
    // The hold of the failed attempt must not end the later one.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(bus.calls(), ["+news", "+news"]);
}
