//! Tests of several nodes, and of the end of one.

use std::time::Duration;

use bytes::Bytes;
use linerate_broker::{Beat, BrokerError, HistoryRequest, LinkState, registry::LEASE};
use linerate_testkit::PATIENCE;
use tokio::time::{Instant, sleep, timeout};

use super::{
    DURABLE, Node, PLAIN, Service,
    history::{payloads, since},
    name, publish,
};

pub(crate) async fn nodes_receive_each_others_publications<S: Service>(service: &S) {
    if !S::IS_SHARED {
        return;
    }
    let (one, other) = (Node::of(service).await, Node::of(service).await);
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        one.subscribe(channel, options).await;
        other.subscribe(channel, options).await;
        one.publish(channel, "from one", options).await;
        one.recorder.payloads(channel, 1).await;
        other.publish(channel, "from other", options).await;
        for node in [&one, &other] {
            let received = node.recorder.payloads(channel, 2).await;
            assert_eq!(received, ["from one", "from other"]);
        }
    }
}

pub(crate) async fn control_messages_reach_all_nodes<S: Service>(service: &S) {
    let mut nodes = vec![Node::of(service).await];
    if S::IS_SHARED {
        nodes.push(Node::of(service).await);
    }
    for number in 0..50_u8 {
        let message = Bytes::from(vec![number, 0, b'\n', 255]);
        nodes[0].broker.send_control(None, message).await.unwrap();
    }
    for node in &nodes {
        let received = node.recorder.control(50).await;
        for (message, number) in received.iter().zip(0..) {
            assert_eq!(message[..], [number, 0, b'\n', 255]);
        }
    }
}

pub(crate) async fn a_control_message_to_one_node_reaches_only_that_node<S: Service>(service: &S) {
    let (one, other) = (Node::of(service).await, Node::of(service).await);
    for (to, message) in [(&other, "other"), (&one, "one")] {
        let sent = one
            .broker
            .send_control(Some(to.broker.node()), message.into());
        sent.await.unwrap();
        // What follows it shows that it did not arrive.
        one.broker.send_control(None, "all".into()).await.unwrap();
    }
    let received = one.recorder.control(3).await;
    assert!(received.contains(&"one".into()), "{received:?}");
    assert!(!received.contains(&"other".into()), "{received:?}");
    if S::IS_SHARED {
        let received = other.recorder.control(3).await;
        assert!(received.contains(&"other".into()), "{received:?}");
        assert!(!received.contains(&"one".into()), "{received:?}");
    }
}

pub(crate) async fn nodes_are_registered_until_they_leave<S: Service>(service: &S) {
    let (one, other) = (Node::of(service).await, Node::of(service).await);
    if !S::IS_SHARED {
        assert_eq!(one.broker.beat("1".into()).await.unwrap(), Beat::ALONE);
        assert!(one.broker.nodes().await.unwrap().is_empty());
        return;
    }
    let beat = async |node: &Node, details: &'static str| {
        let beat = node.broker.beat(details.into()).await.unwrap();
        let Beat { nodes, is_new, .. } = beat;
        (nodes, is_new)
    };
    assert!(one.broker.nodes().await.unwrap().is_empty());
    assert_eq!(beat(&one, "1").await, (1, true));
    assert_eq!(beat(&other, "2").await, (2, true));
    assert_eq!(beat(&one, "3").await, (2, false));
    let mut nodes = other.broker.nodes().await.unwrap();
    nodes.sort();
    let mut expected = [one.broker.node(), other.broker.node()];
    expected.sort_unstable();
    assert_eq!(nodes, expected);
    let mut details = other.broker.node_details().await.unwrap();
    details.sort();
    assert_eq!(details, ["2", "3"]);
    one.broker.deregister().await.unwrap();
    assert_eq!(other.broker.nodes().await.unwrap(), [other.broker.node()]);
    assert_eq!(beat(&other, "4").await, (1, false));
    assert_eq!(beat(&one, "5").await, (2, true));
}

pub(crate) async fn a_node_that_falls_silent_is_forgotten<S: Service>(service: &S) {
    if !S::IS_SHARED {
        return;
    }
    let (one, other) = (Node::of(service).await, Node::of(service).await);
    one.broker.beat("1".into()).await.unwrap();
    let silent_since = Instant::now();
    loop {
        let beat = other.broker.beat("2".into()).await.unwrap();
        let nodes = other.broker.nodes().await.unwrap();
        let age = silent_since.elapsed();
        if nodes == [other.broker.node()] {
            assert!(age > LEASE - Duration::from_secs(1), "{age:?}");
            let beat = other.broker.beat("2".into()).await.unwrap();
            assert_eq!((beat.nodes, beat.is_new), (1, false));
            break;
        }
        assert_eq!((beat.nodes, nodes.len()), (2, 2));
        assert!(age < PATIENCE, "{age:?}");
        sleep(Duration::from_millis(500)).await;
    }
    let beat = one.broker.beat("3".into()).await.unwrap();
    assert_eq!((beat.nodes, beat.is_new), (2, true));
}

pub(crate) async fn any_node_recovers_a_durable_channel<S: Service>(service: &S) {
    let one = Node::of(service).await;
    for number in 1..=5 {
        one.publish("durable", number.to_string(), DURABLE).await;
    }
    let newest = one
        .history("durable", DURABLE, HistoryRequest::default())
        .await
        .newest;
    let other = match S::IS_SHARED {
        true => Node::of(service).await,
        false => one,
    };
    let history = other.history("durable", DURABLE, since(&newest, 2)).await;
    assert_eq!(payloads(&history.publications), ["3", "4", "5"]);
    assert!(history.is_contiguous);
    assert_eq!(history.newest, newest);
}

pub(crate) async fn a_broker_that_was_shut_down_says_so(service: &impl Service) {
    let node = Node::of(service).await;
    assert!(matches!(node.broker.link(), LinkState::Up { .. }));
    node.subscribe("a", PLAIN).await;
    node.broker.shut_down().await;
    assert_eq!(node.broker.link(), LinkState::Deaf);
    let channel = name("a");
    let published = node.broker.publish(&channel, publish("x", PLAIN)).await;
    assert!(matches!(published, Err(BrokerError::Away { .. })));
    let subscribed = node.broker.subscribe(&channel, PLAIN).await;
    assert!(matches!(subscribed, Err(BrokerError::Away { .. })));
    node.broker.unsubscribe(&channel).await;
    node.broker.shut_down().await;
}

pub(crate) async fn dropping_a_publishing_future_breaks_nothing(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("durable", DURABLE).await;
    let channel = name("durable");
    for micros in 0..100 {
        let publish = node.broker.publish(&channel, publish("maybe", DURABLE));
        let _ = timeout(Duration::from_micros(micros), publish).await;
    }
    node.publish("durable", "surely", DURABLE).await;
    let received = node.recorder.until("durable", "surely").await;
    for (publication, offset) in received.iter().zip(1..) {
        assert_eq!(publication.offset(), offset);
    }
}

pub(crate) async fn what_is_kept_is_there_for_nodes_that_start_later<S: Service>(service: &S) {
    if !S::IS_SHARED {
        return;
    }
    let node = Node::of(service).await;
    assert!(node.broker.kept().await.unwrap().is_empty());
    for (id, value, expires_at) in [
        ("a", "old", None),
        ("a.b*>{}", "odd", Some(4_000_000_000)),
        ("a", "new", None),
    ] {
        let value = Bytes::from_static(value.as_bytes());
        node.broker.keep(id, value, expires_at).await.unwrap();
    }
    drop(node);
    let later = Node::of(service).await;
    let mut kept = later.broker.kept().await.unwrap();
    kept.sort();
    assert_eq!(kept, ["new", "odd"]);
}

pub(crate) async fn a_value_is_taken_once<S: Service>(service: &S) {
    const TTL: Duration = Duration::from_secs(60);
    let (node, other) = (Node::of(service).await, Node::of(service).await);
    let (one, two) = match S::IS_SHARED {
        true => (&node.broker, &other.broker),
        false => (&node.broker, &node.broker),
    };
    assert_eq!(two.take("a").await.unwrap(), None);
    for (key, value) in [("a", "old"), ("a", "new"), ("a.b*>{} ", "odd")] {
        one.put(key, value.into(), TTL).await.unwrap();
    }
    let taken = tokio::join!(one.take("a"), two.take("a"), one.take("a"), two.take("a"));
    let taken = [taken.0, taken.1, taken.2, taken.3];
    let taken: Vec<_> = taken.into_iter().filter_map(Result::unwrap).collect();
    assert_eq!(taken, ["new"]);
    assert_eq!(two.take("a.b*>{} ").await.unwrap(), Some("odd".into()));
    one.put("a", "again".into(), TTL).await.unwrap();
    assert_eq!(two.take("a").await.unwrap(), Some("again".into()));
    let short = Duration::from_secs(1);
    one.put("b", "short".into(), short).await.unwrap();
    tokio::time::sleep(2 * short).await;
    assert_eq!(two.take("b").await.unwrap(), None);
}
