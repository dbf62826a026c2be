//! The behavior of a node with a small memory budget.

use linerate_broker::{BrokerError, HistoryRequest, StreamOptions};
use linerate_budget::{Budget, Consumer, State};
use linerate_hub::ChannelName;

use super::{PLAIN, channel, connect, node_within, publish, subscription};
use crate::node::{Node, StartPosition, SubscribeError};

const MIB: u64 = 1 << 20;

const DURABLE: StreamOptions = StreamOptions {
    is_durable: true,
    ..PLAIN
};

async fn read(node: &Node, name: &ChannelName, limit: usize) -> Result<usize, BrokerError> {
    let request = HistoryRequest {
        limit: Some(limit),
        ..HistoryRequest::default()
    };
    let history = node.histories.read(name, DURABLE, request).await?;
    Ok(history.publications.len())
}

#[tokio::test]
async fn histories_are_refused_while_memory_is_critical_and_positions_are_not() {
    let budget = Budget::new(16 * MIB);
    let (node, worker) = node_within(budget.clone());
    let news = channel("news");
    for _ in 0..3 {
        publish(&node, "news", "x").await;
    }
    let mut others = budget.lease(Consumer::Backlogs);
    others.set(14 * MIB);
    assert_eq!(budget.state(), State::Tight);
    assert_eq!(read(&node, &news, 3).await.unwrap(), 3);
    others.set(16 * MIB);
    let refused = read(&node, &news, 3).await.unwrap_err();
    assert!(refused.to_string().contains("memory"), "{refused}");
    assert_eq!(read(&node, &news, 0).await.unwrap(), 0);

    // A client that recovers is refused as well; one that starts with new publications is not.
    let (client, _memo) = connect(&worker, "", "c");
    let mut wanted = subscription("news");
    wanted.stream = DURABLE;
    wanted.from = StartPosition::Newest;
    let subscribed = worker.subscribe(client, wanted.clone()).await;
    wanted.from = StartPosition::After(subscribed.unwrap().position.unwrap());
    worker.unsubscribe(client, &news);
    let refused = worker.subscribe(client, wanted.clone()).await.unwrap_err();
    assert!(matches!(
        refused,
        SubscribeError::Broker(BrokerError::Overloaded)
    ));
    drop(others);
    assert!(worker.subscribe(client, wanted).await.is_ok());
}

#[tokio::test]
async fn publications_count_while_the_nodes_own_history_keeps_them() {
    let budget = Budget::new(64 * MIB);
    let (node, _worker) = node_within(budget.clone());
    let payload = "x".repeat(100_000);
    for _ in 0..100 {
        publish(&node, "nobody", &payload).await;
    }
    let used = budget.used(Consumer::Publications);
    // As much as a channel may keep, plus one slab.
    assert!((4 * MIB - 200_000..6 * MIB).contains(&used), "{used}");
}
