//! Tests of live publications.

use bytes::Bytes;
use futures_util::future::join_all;
use linerate_broker::{BrokerError, BrokerOptions};

use super::{BARE, DURABLE, Node, PLAIN, Service, name, publish};

pub(crate) async fn payloads_arrive_byte_for_byte(service: &impl Service) {
    let node = Node::of(service).await;
    let all_bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let payloads: [Bytes; 6] = [
        Bytes::from_static(b"{\"a\": 1}\n"),
        Bytes::new(),
        Bytes::from_static(b"\0\r\n$5\r\nhello\r\n\xff"),
        Bytes::from_static("žluťoučký".as_bytes()),
        Bytes::from(vec![0; 300_000]),
        all_bytes.into(),
    ];
    for (channel, options) in [("bare", BARE), ("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        for payload in &payloads {
            node.publish(channel, payload.clone(), options).await;
        }
        let received = node.recorder.payloads(channel, payloads.len()).await;
        assert!(received == payloads, "{channel}");
    }
}

pub(crate) async fn publications_arrive_in_the_order_of_publishing(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        let sent: Vec<Bytes> = (0..500).map(|n| n.to_string().into()).collect();
        for payload in &sent {
            node.publish(channel, payload.clone(), options).await;
        }
        let received = node.recorder.payloads(channel, sent.len()).await;
        assert_eq!(received, sent);
    }
}

pub(crate) async fn two_publishers_do_not_mix_up_the_order_of_offsets(service: &impl Service) {
    let node = Node::of(service).await;
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        join_all((0..300).map(|_| node.publish(channel, "x", options))).await;
        let received = node.recorder.publications(channel, 300).await;
        let offsets: Vec<u64> = received.iter().map(|found| found.offset()).collect();
        let expected: Vec<u64> = (1..=300).collect();
        assert_eq!(offsets, expected, "{channel}");
    }
}

pub(crate) async fn only_subscribed_channels_arrive(service: &impl Service) {
    let node = Node::of(service).await;
    node.subscribe("a", PLAIN).await;
    node.publish("b", "not this", PLAIN).await;
    node.publish("a", "this", PLAIN).await;
    assert_eq!(node.recorder.payloads("a", 1).await, ["this"]);
    node.subscribe("b", PLAIN).await;
    node.publish("b", "now this", PLAIN).await;
    assert_eq!(node.recorder.payloads("b", 1).await, ["now this"]);
}

pub(crate) async fn what_was_unsubscribed_arrives_no_more(service: &impl Service) {
    let node = Node::of(service).await;
    for channel in ["a", "b"] {
        node.subscribe(channel, PLAIN).await;
    }
    node.publish("a", "1", PLAIN).await;
    node.recorder.payloads("a", 1).await;
    node.broker.unsubscribe(&name("a")).await;
    node.broker.unsubscribe(&name("never-subscribed")).await;
    // A server may process commands from another connection first, so an unsubscription may lag.
    node.subscribe("fence", PLAIN).await;
    node.publish("a", "2", PLAIN).await;
    node.publish("b", "3", PLAIN).await;
    node.recorder.payloads("b", 1).await;
    assert_eq!(node.recorder.payloads("a", 1).await, ["1"]);
}

pub(crate) async fn a_channel_can_be_subscribed_again(service: &impl Service) {
    let node = Node::of(service).await;
    for number in 1..=20 {
        node.subscribe("a", PLAIN).await;
        node.publish("a", "x", PLAIN).await;
        node.recorder.payloads("a", number).await;
        node.broker.unsubscribe(&name("a")).await;
    }
    // Repeat it without waiting in between.
    for _ in 0..20 {
        node.subscribe("a", PLAIN).await;
        node.broker.unsubscribe(&name("a")).await;
    }
    node.subscribe("a", PLAIN).await;
    node.publish("a", "last", PLAIN).await;
    let received = node.recorder.payloads("a", 21).await;
    assert_eq!(received[20..], ["last"]);
}

pub(crate) async fn many_channels_are_subscribed_at_once(service: &impl Service) {
    let node = Node::of(service).await;
    let channels: Vec<String> = (0..1_000).map(|number| format!("c{number}")).collect();
    join_all(channels.iter().map(|channel| node.subscribe(channel, BARE))).await;
    join_all(channels.iter().map(|channel| {
        let payload = channel.clone();
        node.publish(channel, payload, BARE)
    }))
    .await;
    for channel in &channels {
        let received = node.recorder.payloads(channel, 1).await;
        assert_eq!(received, [channel.as_str()]);
    }
}

pub(crate) async fn patterns_deliver_what_matches_and_say_where_it_came_from<S: Service>(
    service: &S,
) {
    let node = Node::of(service).await;
    let (pattern, inside, outside) = S::PATTERN;
    if pattern.is_empty() {
        return;
    }
    assert!(node.broker.is_pattern(&name(pattern)));
    assert!(!node.broker.is_pattern(&name(inside)));
    node.subscribe(pattern, PLAIN).await;
    node.publish(outside, "no", PLAIN).await;
    node.publish(inside, "yes", PLAIN).await;
    let received = node.recorder.publications(pattern, 1).await;
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].payload(), "yes");
    assert_eq!(received[0].source(), Some(&name(inside)));
    assert_eq!(received[0].position(), None);
    node.subscribe(inside, PLAIN).await;
    node.publish(inside, "both", PLAIN).await;
    assert_eq!(node.recorder.payloads(inside, 1).await, ["both"]);
    assert_eq!(node.recorder.payloads(pattern, 2).await, ["yes", "both"]);
    node.broker.unsubscribe(&name(pattern)).await;
}

pub(crate) async fn a_payload_that_is_too_long_is_refused_with_both_numbers(
    service: &impl Service,
) {
    let options = BrokerOptions {
        payload_bytes_max: 1_000,
        ..BrokerOptions::default()
    };
    let node = Node::with(service, options).await;
    for (channel, options) in [("plain", PLAIN), ("durable", DURABLE)] {
        node.subscribe(channel, options).await;
        let too_long = publish(vec![b'x'; 1_001], options);
        let refused = node.broker.publish(&name(channel), too_long).await;
        let error = refused.unwrap_err();
        assert!(
            matches!(
                error,
                BrokerError::PayloadTooLarge {
                    bytes: 1_001,
                    bytes_max: 1_000
                }
            ),
            "{error}"
        );
        node.publish(channel, vec![b'x'; 1_000], options).await;
        let received = node.recorder.payloads(channel, 1).await;
        assert_eq!(received[0].len(), 1_000);
    }
}
