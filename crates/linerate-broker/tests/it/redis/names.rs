//! Tests of histories that an earlier version has stored under other keys.

use linerate_broker::HistoryRequest;

use super::Standalone;
use crate::contract::{DURABLE, Node};

/// Stores a channel as an earlier version did, with the keys `linerate.meta.NAME` and
/// `linerate.stream.NAME`.
fn store(service: &Standalone, name: &str) {
    let script = "local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') \
        redis.call('HSET', KEYS[1], 'epoch', 'former', 'run', run, 'offset', '7') \
        local time = redis.call('TIME')[1] .. '000' \
        return redis.call('XADD', KEYS[2], '7-' .. time, 'payload', 'kept', 'meta', '')";
    let keys = ["meta", "stream"].map(|what| format!("linerate.{what}.{name}"));
    let stored = service
        .server
        .cli(&["EVAL", script, "2", &keys[0], &keys[1]]);
    assert!(stored.starts_with("7-"), "{stored}");
}

#[tokio::test]
async fn history_under_the_keys_of_an_earlier_version_moves_to_the_new_ones() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    for read in ["{user}.read", "{user}.written"] {
        store(&service, read);
    }
    let read = async |channel| {
        node.history(channel, DURABLE, HistoryRequest::default())
            .await
    };
    let history = read("{user}.read").await;
    assert_eq!(history.newest.epoch.as_str(), "former");
    assert_eq!(history.publications[0].payload(), "kept");
    let published = node.publish("{user}.written", "next", DURABLE).await;
    assert_eq!(published.position.unwrap().offset, 8);
    assert_eq!(read("{user}.written").await.publications.len(), 2);
    assert_eq!(service.server.cli(&["KEYS", "linerate.meta.*"]), "");
}

#[tokio::test]
async fn ambiguous_history_is_not_moved() {
    let Some(service) = Standalone::start() else {
        return;
    };
    let node = Node::of(&service).await;
    store(&service, "{private:room}");
    let read = async |channel| {
        node.history(channel, DURABLE, HistoryRequest::default())
            .await
    };
    assert!(read("{private:room}").await.publications.is_empty());
    let forged = node.publish("{private:room}", "forged", DURABLE).await;
    assert_eq!(forged.position.unwrap().offset, 1);
    let history = read("private:room").await;
    assert_eq!(history.newest.epoch.as_str(), "former");
    assert_eq!(history.publications[0].payload(), "kept");
    assert_eq!(history.publications.len(), 1);
}
