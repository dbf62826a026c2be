//! Tests the detection of a broker that refuses durable publications.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use linerate_broker::{Publish, StreamOptions};
use tokio::time::sleep;

use super::{Bus, channel, node_on};
use crate::node::Node;

async fn publish(node: &Node) -> bool {
    let publish = Publish {
        payload: "x".into(),
        info: None,
        tags: Vec::new(),
        idempotency_key: None,
        options: StreamOptions {
            is_durable: true,
            size_max: 10,
            ttl: Duration::from_secs(60),
        },
    };
    node.publisher.publish(&channel("a"), publish).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn while_durable_publications_are_refused_that_is_known_until_one_would_be_taken() {
    let bus = Arc::new(Bus::default());
    let (node, _workers) = node_on(&bus, 1);
    for _ in 0..2 {
        bus.is_away.store(true, Ordering::SeqCst);
        assert!(!publish(&node).await);
        assert!(
            !node.publisher.writes.are_refused(),
            "one refusal may be due to the publication itself"
        );
        sleep(Duration::from_secs(3)).await;
        assert!(node.publisher.writes.are_refused());
        bus.is_away.store(false, Ordering::SeqCst);
        sleep(Duration::from_millis(1_100)).await;
        assert!(!node.publisher.writes.are_refused());
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(node.publisher.writes.refused(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_publication_that_is_refused_for_its_own_sake_says_nothing_of_others() {
    let bus = Arc::new(Bus::default());
    let (node, _workers) = node_on(&bus, 1);
    for _ in 0..20 {
        bus.is_away.store(true, Ordering::SeqCst);
        assert!(!publish(&node).await);
        bus.is_away.store(false, Ordering::SeqCst);
        sleep(Duration::from_millis(500)).await;
        assert!(!node.publisher.writes.are_refused());
    }
}
