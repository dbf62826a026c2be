//! Which blocks are encoded once, and which subscribers share them.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use linerate_hub::{ClientId, EncodingId, HubOptions, SlowPolicy, SubscriptionOptions, Transmit};

use crate::world::{Contains, World, block, text};

fn bytes_of(world: &mut World, client: ClientId) -> Bytes {
    match world.hub.poll_transmit(world.now, client) {
        Some(Transmit::Block { block, .. }) => block,
        other => panic!("expected a block, got {other:?}"),
    }
}

#[test]
fn ten_thousand_subscribers_of_a_channel_share_one_block() {
    let mut world = World::new();
    let clients: Vec<ClientId> = (0..10_000).map(|_| world.listen("a", text())).collect();
    world.ready();
    clients
        .iter()
        .for_each(|client| assert!(world.take(*client).is_empty()));
    for _ in 0..3 {
        world.publish("a", "1");
    }
    assert_eq!(world.ready().len(), clients.len());
    let first = bytes_of(&mut world, clients[0]);
    for client in &clients[1..] {
        assert_eq!(bytes_of(&mut world, *client).as_ptr(), first.as_ptr());
    }
    let totals = world.hub.totals();
    assert_eq!((totals.frozen_blocks, totals.delivered_blocks), (1, 10_000));
    assert_eq!(totals.delivered_messages, 30_000);
    assert_eq!(totals.published_messages, 3);
}

#[test]
fn ten_thousand_channels_with_a_subscriber_each_get_their_own() {
    let mut world = World::new();
    let names: Vec<String> = (0..10_000).map(|index| format!("a{index}")).collect();
    let clients: Vec<ClientId> = names
        .iter()
        .map(|name| world.listen(name, text()))
        .collect();
    world.ready();
    for (name, client) in names.iter().zip(&clients) {
        world.take(*client);
        world.publish(name, name);
    }
    assert_eq!(world.ready(), clients);
    for (name, client) in names.iter().zip(&clients) {
        assert_eq!(bytes_of(&mut world, *client), format!("{name};"));
    }
}

#[test]
fn a_burst_makes_a_client_ready_once() {
    let mut world = World::new();
    let client = world.listen("a", text());
    let subscription = world.join(client, "b", text());
    world
        .hub
        .activate(world.now, subscription, linerate_hub::Start::Live);
    for _ in 0..100 {
        world.publish("a", "1");
        world.publish("b", "2");
    }
    assert_eq!(world.ready(), [client]);
    world.publish("a", "3");
    assert_eq!(world.ready(), []);
}

#[test]
fn encodings_filters_and_intervals_have_separate_blocks() {
    let mut world = World::new();
    let filtered = SubscriptionOptions {
        filter: Some(Arc::new(Contains("1"))),
        ..text()
    };
    let ticking = SubscriptionOptions {
        batch_interval: Duration::from_millis(100),
        ..text()
    };
    let other = SubscriptionOptions::new(EncodingId(1));
    for options in [text(), filtered, ticking, other] {
        world.listen("a", options.clone());
        world.listen("a", options);
    }
    for client in world.ready() {
        world.take(client);
    }
    world.publish("a", "1");
    world.ready();
    world.pass(Duration::from_millis(100));
    let clients: Vec<ClientId> = world.all.clone();
    for client in clients {
        world.take(client);
    }
    let totals = world.hub.totals();
    assert_eq!((totals.frozen_blocks, totals.delivered_blocks), (4, 8));
}

#[test]
fn a_later_subscriber_at_the_same_position_gets_the_same_blocks() {
    let mut world = World::new();
    let fast = world.listen("a", text());
    let slow = world.listen("a", text());
    assert_eq!(world.ready(), [fast, slow]);
    world.take(fast);
    for payload in ["1", "2", "3"] {
        world.publish("a", payload);
        assert_eq!(world.ready(), [fast]);
        world.take(fast);
    }
    world.hub.handle_writable(slow);
    assert_eq!(world.ready(), [slow]);
    assert_eq!(world.take(slow).len(), 3);
    assert_eq!(world.hub.totals().frozen_blocks, 3);
}

#[test]
fn blocks_that_are_not_kept_are_encoded_again() {
    let mut world = World::with(HubOptions {
        block_cache_bytes_max: 0,
        ..HubOptions::default()
    });
    let fast = world.listen("a", text());
    let slow = world.listen("a", text());
    world.ready();
    world.take(fast);
    for payload in ["1", "2", "3"] {
        world.publish("a", payload);
        world.ready();
        world.take(fast);
    }
    assert_eq!(bytes_of(&mut world, slow), "1;2;");
    assert_eq!(bytes_of(&mut world, slow), "3;");
    assert_eq!(world.hub.totals().frozen_blocks, 5);
}

#[test]
fn channels_of_a_client_take_turns() {
    let mut world = World::new();
    let one_each = SubscriptionOptions {
        batch_bytes_max: 1,
        slow: SlowPolicy::DropOldest,
        ..text()
    };
    let client = world.listen("a", one_each.clone());
    let subscription = world.join(client, "b", one_each);
    world
        .hub
        .activate(world.now, subscription, linerate_hub::Start::Live);
    for payload in ["1", "2", "3"] {
        world.publish("a", payload);
        world.publish("b", payload.repeat(2).as_str());
    }
    world.ready();
    let blocks: Vec<Bytes> = (0..6).map(|_| bytes_of(&mut world, client)).collect();
    assert_eq!(blocks, ["1;", "11;", "2;", "22;", "3;", "33;"]);
}

fn sequenced() -> SubscriptionOptions {
    SubscriptionOptions {
        is_sequenced: true,
        ..text()
    }
}

#[test]
fn blocks_for_several_subscribers_are_told_their_places() {
    let mut world = World::new();
    let first = world.listen("a", sequenced());
    world.ready();
    world.take(first);
    world.publish("a", "0");
    // A single subscriber shares nothing.
    assert_eq!(world.deliver(first), [block("0;")]);
    let (second, other) = (world.listen("a", sequenced()), world.listen("a", text()));
    world.ready();
    for client in [second, other] {
        world.take(client);
    }
    world.publish("a", "1");
    world.ready();
    assert_eq!(world.take(first), [block("1;@1-2#1")]);
    assert_eq!(world.take(other), [block("1;")]);
    world.publish("a", "2");
    world.ready();
    assert_eq!(world.take(first), [block("2;@2-3#2")]);
    // The second subscriber takes the blocks that the first one took.
    let both = [block("1;@1-2#1"), block("2;@2-3#2")];
    assert_eq!(world.take(second), both);
}

#[test]
fn a_block_that_overlaps_with_others_is_recognised_by_its_place() {
    let mut world = World::with(HubOptions {
        block_cache_bytes_max: 0,
        ..HubOptions::default()
    });
    let clients = [(); 2].map(|()| world.listen("a", sequenced()));
    world.ready();
    for client in clients {
        world.take(client);
    }
    for number in ["0", "1"] {
        world.publish("a", number);
        world.ready();
        let _ = world.take(clients[0]);
    }
    world.publish("a", "2");
    world.ready();
    assert_eq!(world.take(clients[0]), [block("2;@2-3#3")]);
    assert_eq!(
        world.take(clients[1]),
        [block("0;1;@0-2#4"), block("2;@2-3#5")]
    );
}
