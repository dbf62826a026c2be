//! Tests of the presence of clients of several nodes.

use std::time::Duration;

use linerate_broker::{BrokerError, PresenceChange, registry::LEASE};
use linerate_hub::{ClientInfo, presence::Counts};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep};

use super::{Node, Service, name};

const BYTES_MAX: usize = 100_000;

fn info(user: &str, client: &str) -> ClientInfo {
    ClientInfo {
        user: user.into(),
        client: client.into(),
        connection: Some((*b"{\"name\":\"Ada L\"}").into()),
        channel: None,
    }
}

fn change(channel: &str, user: &str, client: &str, is_present: bool) -> PresenceChange {
    PresenceChange {
        channel: name(channel),
        info: info(user, client),
        is_present,
    }
}

async fn set(node: &Node, changes: &[PresenceChange]) {
    node.broker.set_presence(changes).await.unwrap();
}

async fn clients(node: &Node, channel: &str) -> Vec<ClientInfo> {
    let present = node.broker.presence(&name(channel), BYTES_MAX).await;
    let mut present = present.unwrap();
    present.sort_by(|a, b| a.client.cmp(&b.client));
    present
}

async fn counts(node: &Node, channel: &str) -> (usize, usize) {
    let counts = node.broker.presence_counts(&name(channel)).await;
    let Counts { clients, users } = counts.unwrap();
    (clients, users)
}

/// Attaches two nodes and registers them, unless the nodes of the service do not share anything.
async fn pair<S: Service>(service: &S) -> Option<(Node, Node)> {
    let (one, other) = (Node::of(service).await, Node::of(service).await);
    assert_eq!(one.broker.stores_presence(), S::IS_SHARED);
    if !S::IS_SHARED {
        return None;
    }
    for node in [&one, &other] {
        let beat = node.broker.beat("".into()).await.unwrap();
        assert!(beat.is_new);
    }
    Some((one, other))
}

/// Waits until the counts in a channel are as expected, while these nodes beat.
async fn until_counts(nodes: &[&Node], channel: &str, expected: (usize, usize)) {
    let (begun, one) = (Instant::now(), nodes[0]);
    while counts(one, channel).await != expected {
        assert!(
            begun.elapsed() < PATIENCE,
            "{:?}",
            counts(one, channel).await
        );
        sleep(Duration::from_millis(300)).await;
        for node in nodes {
            node.broker.beat("".into()).await.unwrap();
        }
    }
}

pub(crate) async fn presence_is_that_of_all_nodes<S: Service>(service: &S) {
    let Some((one, other)) = pair(service).await else {
        return;
    };
    assert!(clients(&one, "room").await.is_empty());
    assert_eq!(counts(&one, "room").await, (0, 0));
    set(
        &one,
        &[
            change("room", "ada", "1", true),
            change("room", "b \n.*>ü", "2", true),
            change("room{x}", "ada", "1", true),
        ],
    )
    .await;
    for _ in 0..2 {
        set(&other, &[change("room", "ada", "3", true)]).await;
    }
    let all = [info("ada", "1"), info("b \n.*>ü", "2"), info("ada", "3")];
    for node in [&one, &other] {
        assert_eq!(clients(node, "room").await, all);
        assert_eq!(counts(node, "room").await, (3, 2));
        assert_eq!(clients(node, "room{x}").await, [info("ada", "1")]);
    }
    for _ in 0..2 {
        set(&one, &[change("room", "ada", "1", false)]).await;
        assert_eq!(counts(&other, "room").await, (2, 2));
    }
    set(&other, &[change("room", "ada", "3", false)]).await;
    for node in [&one, &other] {
        assert_eq!(clients(node, "room").await, [info("b \n.*>ü", "2")]);
        assert_eq!(counts(node, "room").await, (1, 1));
        assert_eq!(counts(node, "room{x}").await, (1, 1));
    }
}

pub(crate) async fn presence_that_is_too_large_is_refused<S: Service>(service: &S) {
    let Some((one, _)) = pair(service).await else {
        return;
    };
    let clients = (0..600).map(|client| change("room", "ada", &client.to_string(), true));
    let clients: Vec<_> = clients.collect();
    set(&one, &clients).await;
    let room = name("room");
    assert_eq!(
        one.broker.presence(&room, BYTES_MAX).await.unwrap().len(),
        600
    );
    for bytes_max in [0, 1_000, 10_000] {
        let refused = one.broker.presence(&room, bytes_max).await.unwrap_err();
        assert!(
            matches!(refused, BrokerError::PresenceTooLarge { bytes_max: max } if max == bytes_max),
            "{refused}"
        );
    }
    assert_eq!(counts(&one, "room").await, (600, 1));
}

pub(crate) async fn a_node_that_resets_its_presence_leaves_that_of_others<S: Service>(service: &S) {
    let Some((one, other)) = pair(service).await else {
        return;
    };
    let ours: Vec<_> = (0..300)
        .map(|client| change("room", "ada", &format!("1.{client}"), true))
        .collect();
    set(&one, &ours).await;
    set(&other, &[change("room", "bob", "2", true)]).await;
    one.broker.reset_presence().await.unwrap();
    assert_eq!(clients(&other, "room").await, [info("bob", "2")]);
    set(&one, &[change("room", "ada", "1.0", true)]).await;
    let both = [info("ada", "1.0"), info("bob", "2")];
    assert_eq!(clients(&other, "room").await, both);
    until_counts(&[&other, &one], "room", (2, 2)).await;
    other.broker.deregister().await.unwrap();
    assert_eq!(clients(&one, "room").await, [info("ada", "1.0")]);
    until_counts(&[&one], "room", (1, 1)).await;
}

pub(crate) async fn the_presence_of_a_silent_node_disappears<S: Service>(service: &S) {
    let Some((one, silent)) = pair(service).await else {
        return;
    };
    set(&one, &[change("room", "ada", "1", true)]).await;
    silent.broker.beat("".into()).await.unwrap();
    let since = Instant::now();
    set(&silent, &[change("room", "bob", "2", true)]).await;
    until_counts(&[&one], "room", (1, 1)).await;
    assert!(since.elapsed() > LEASE - Duration::from_secs(1));
    assert_eq!(clients(&one, "room").await, [info("ada", "1")]);
    // The node was only stalled.
    let beat = silent.broker.beat("".into()).await.unwrap();
    assert!(beat.has_lost_presence);
    silent.broker.reset_presence().await.unwrap();
    set(&silent, &[change("room", "bob", "2", true)]).await;
    let beat = silent.broker.beat("".into()).await.unwrap();
    assert!(!beat.has_lost_presence);
    one.broker.beat("".into()).await.unwrap();
    assert_eq!(counts(&one, "room").await, (2, 2));
}
