//! Tests of the numbers of subscriptions that the clients of two nodes are told.

use std::sync::Arc;

use linerate_hub::ClientId;

use super::{Memo, cluster::pair, connect, connect_with, subscription};
use crate::{
    node::{Notice, Worker},
    protocol::pusher,
};

async fn join(worker: &Arc<Worker>, name: &str) -> (ClientId, Arc<Memo>) {
    let (id, memo) = connect_with(worker, ("", name), &pusher::EVENTS.name);
    worker.subscribe(id, subscription("news")).await.unwrap();
    (id, memo)
}

/// Waits until a client is told this number. Others can come before it.
async fn told(memo: &Memo, expected: u64) {
    loop {
        let Notice::SubscriptionCount { channel, count } = memo.notice().await else {
            panic!("expected a number");
        };
        assert_eq!(channel.as_str(), "news");
        if count == expected {
            return;
        }
    }
}

#[tokio::test]
async fn the_subscriptions_of_all_nodes_are_counted() {
    let pair = pair().await;
    for node in &pair.nodes {
        node.switch_subscription_counts(true);
    }
    let [here, there] = &pair.workers;
    let (_, ann) = join(here, "1").await;
    told(&ann, 1).await;
    let (bob_id, bob) = join(there, "2").await;
    told(&ann, 2).await;
    told(&bob, 2).await;
    let (_, eve) = join(there, "3").await;
    for memo in [&ann, &bob, &eve] {
        told(memo, 3).await;
    }
    there.disconnect(bob_id);
    told(&ann, 2).await;
    let gone = pair.nodes[1].cluster.this_id().to_owned();
    pair.nodes[0].cluster.handle_goodbye(&[gone]);
    told(&ann, 1).await;
}

#[tokio::test]
async fn clients_of_other_protocols_are_counted_but_not_told() {
    let pair = pair().await;
    let [here, _] = &pair.workers;
    let (_, ann) = join(here, "1").await;
    let (other, native) = connect(here, "", "2");
    here.subscribe(other, subscription("news")).await.unwrap();
    pair.nodes[0].switch_subscription_counts(true);
    told(&ann, 2).await;
    assert!(native.has_no_notice());
}
