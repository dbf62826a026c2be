//! Tests of several nodes, and of the end of one.

use std::time::Duration;

use bytes::Bytes;
use linerate_broker::{BrokerError, Event, HistoryRequest, LinkState};
use tokio::time::timeout;

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
        nodes[0].broker.send_control(message).await.unwrap();
    }
    for node in &nodes {
        let received = node.recorder.wait("control messages", |events| {
            let messages = events.iter().filter_map(|(_, event)| match event {
                Event::Control(message) => Some(message.clone()),
                _ => None,
            });
            let messages: Vec<Bytes> = messages.collect();
            (messages.len() >= 50).then_some(messages)
        });
        for (message, number) in received.await.iter().zip(0..) {
            assert_eq!(message[..], [number, 0, b'\n', 255]);
        }
    }
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
