//! Publishing, subscribing, and which clients receive what.

use std::{collections::HashSet, sync::Arc};

use linerate_hub::{Gap, GapCause, Start, SubscriptionOptions};

use crate::world::{Contains, Seen, World, block, name, position, text};

#[test]
fn a_publication_reaches_only_the_subscribers_of_its_channel() {
    let mut world = World::new();
    let a = world.listen("a", text());
    let b = world.listen("b", text());
    world.ready();
    assert_eq!(world.take(a), []);
    assert_eq!(world.take(b), []);
    world.publish("a", "1");
    world.publish("c", "2");
    assert_eq!(world.deliver(a), [block("1;")]);
    assert_eq!(world.take(b), []);
}

#[test]
fn a_channel_is_named_by_its_number_to_those_who_know_it() {
    let mut world = World::new();
    let numbered = || SubscriptionOptions {
        with_channel_id: true,
        with_positions: false,
        ..text()
    };
    let clients = [
        world.listen("a", numbered()),
        world.listen("a", text()),
        world.listen("b", numbered()),
    ];
    let [a, b] = ["a", "b"].map(|channel| world.hub.channel_id(channel).unwrap());
    assert_ne!(a, b);
    world.publish("a", "1");
    world.publish("b", "2");
    world.ready();
    let expected = [format!("{a}:1;"), "1;".into(), format!("{b}:2;")];
    for (client, expected) in clients.into_iter().zip(expected) {
        assert_eq!(world.take(client), [block(&expected)]);
    }
    let options = world.hub.subscription_options(clients[0], &name("a"));
    assert!(options.unwrap().with_channel_id);
}

#[test]
fn a_burst_is_one_block() {
    let mut world = World::new();
    let client = world.listen("a", text());
    for payload in ["1", "2", "3"] {
        world.publish("a", payload);
    }
    assert_eq!(world.deliver(client), [block("1;2;3;")]);
}

#[test]
fn nothing_is_delivered_before_a_subscription_is_active() {
    let mut world = World::new();
    let client = world.hub.connect();
    let subscription = world.join(client, "a", text());
    world.publish("a", "1");
    assert_eq!(world.ready(), []);
    world.hub.activate(world.now, subscription, Start::Live);
    assert_eq!(world.deliver(client), [block("1;")]);
}

#[test]
fn filters_select_publications_and_are_matched_once_per_class() {
    let mut world = World::new();
    let with = |filter| SubscriptionOptions {
        filter: Some(Arc::new(Contains(filter))),
        ..text()
    };
    let a = world.listen("a", with("x"));
    let b = world.listen("a", with("y"));
    for payload in ["x1", "y2", "xy3"] {
        world.publish("a", payload);
    }
    world.ready();
    assert_eq!(world.take(a), [block("x1;xy3;")]);
    assert_eq!(world.take(b), [block("y2;xy3;")]);
}

#[test]
fn a_client_that_is_behind_the_ring_is_told_how_many_it_missed() {
    let mut world = World::with_ring(2);
    let client = world.listen("a", text());
    for payload in ["1", "2", "3", "4", "5"] {
        world.publish("a", payload);
    }
    let gap = Gap {
        missed: Some(3),
        cause: GapCause::RingEvicted,
    };
    assert_eq!(world.deliver(client), [Seen::Gap(gap), block("4;5;")]);
}

#[test]
fn a_gap_of_the_broker_stands_where_it_happened() {
    let mut world = World::new();
    let client = world.listen("a", text());
    world.publish("a", "1");
    world.hub.handle_gap(world.now, None, GapCause::LinkLost);
    world.publish("a", "2");
    let gap = Gap {
        missed: None,
        cause: GapCause::LinkLost,
    };
    let expected = [block("1;"), Seen::Gap(gap), block("2;")];
    assert_eq!(world.deliver(client), expected);
}

#[test]
fn publications_read_as_history_are_not_delivered_again() {
    let mut world = World::new();
    let client = world.hub.connect();
    let subscription = world.join(client, "a", text());
    for offset in 5..=8 {
        world.publish_at("a", "e", offset);
    }
    let start = Start::After(position("e", 6));
    world.hub.activate(world.now, subscription, start);
    assert_eq!(world.deliver(client), [block("e7;e8;")]);
}

#[test]
fn a_channel_without_subscribers_disappears() {
    let mut world = World::new();
    let a = world.listen("a", text());
    let b = world.listen("a", text());
    assert_eq!(world.hub.subscribers("a"), 2);
    let subscribed = |world: &World| world.hub.subscribed_clients("a").collect::<HashSet<_>>();
    assert_eq!(subscribed(&world), HashSet::from([a, b]));
    assert_eq!(
        world.hub.unsubscribe(a, &name("a")).map(|e| e.0),
        Some(false)
    );
    assert_eq!(world.hub.unsubscribe(a, &name("a")), None);
    assert_eq!(subscribed(&world), HashSet::from([b]));
    assert_eq!(world.hub.disconnect(b), [name("a")]);
    assert!(!world.hub.has_channel("a"));
    assert!(subscribed(&world).is_empty());
}

#[test]
fn a_batch_is_delivered_when_its_interval_ends() {
    let mut world = World::new();
    let interval = std::time::Duration::from_millis(200);
    let client = world.listen(
        "a",
        SubscriptionOptions {
            batch_interval: interval,
            ..text()
        },
    );
    world.ready();
    world.take(client);
    world.publish("a", "1");
    assert_eq!(world.ready(), []);
    let tick = world.hub.poll_timeout().unwrap();
    assert!(tick > world.now && tick <= world.now + interval);
    world.publish("a", "2");
    world.pass(tick - world.now);
    assert_eq!(world.deliver(client), [block("1;2;")]);
    assert_eq!(world.hub.poll_timeout(), None);
}

#[test]
fn a_hub_knows_how_many_clients_subscriptions_and_channels_it_has() {
    let mut world = World::new();
    let a = world.listen("a", text());
    let b = world.listen("b", text());
    world.join(b, "a", text());
    assert_eq!((world.hub.clients(), world.hub.subscriptions()), (2, 3));
    let mut channels: Vec<(String, usize)> = world
        .hub
        .channels()
        .map(|(name, subscriptions)| (name.to_string(), subscriptions))
        .collect();
    channels.sort_unstable();
    assert_eq!(channels, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
    let id = |world: &World, name| world.hub.channel_id(name);
    assert!(id(&world, "a").is_some() && id(&world, "a") != id(&world, "b"));
    assert_eq!(id(&world, "c"), None);
    world.hub.disconnect(b);
    assert_eq!((world.hub.clients(), world.hub.subscriptions()), (1, 1));
    assert_eq!((world.hub.subscribers("a"), id(&world, "b")), (1, None));
    world.hub.disconnect(a);
    assert_eq!((world.hub.clients(), world.hub.subscriptions()), (0, 0));
}
