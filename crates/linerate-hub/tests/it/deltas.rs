//! What the payloads that subscribers receive may be deltas from.

use std::time::Duration;

use linerate_hub::{
    Conflate, Gap, GapCause, JsonPointer, Publication, SlowPolicy, Start, SubscriptionOptions,
    fossil, hub::MemoryUse,
};

use crate::world::{Contains, Seen, World, block, name, position, positioned, text};

fn deltas() -> SubscriptionOptions {
    SubscriptionOptions {
        with_deltas: true,
        ..text()
    }
}

#[test]
fn a_payload_is_a_delta_from_the_one_before_it() {
    let mut world = World::new();
    let client = world.listen("a", deltas());
    let other = world.listen("a", text());
    for (payload, with_deltas) in [("1", "1;"), ("2", "1>2;"), ("3", "2>3;")] {
        world.publish("a", payload);
        assert_eq!(world.ready(), [client, other]);
        assert_eq!(world.take(client), [block(with_deltas)]);
        assert_eq!(world.take(other), [block(&format!("{payload};"))]);
    }
    world.publish("a", "4");
    world.publish("a", "5");
    assert_eq!(world.ready(), [client, other]);
    assert_eq!(world.take(client), [block("3>4;4>5;")]);
}

#[test]
fn who_comes_later_begins_with_a_whole_payload_and_others_share_a_delta() {
    let mut world = World::new();
    let early = [world.listen("a", deltas()), world.listen("a", deltas())];
    world.publish("a", "1");
    world.ready();
    for client in early {
        assert_eq!(world.take(client), [block("1;")]);
    }
    let late = [world.listen("a", deltas()), world.listen("a", deltas())];
    world.ready();
    for client in late {
        assert_eq!(world.take(client), []);
    }
    let encoded = world.hub.totals().frozen_blocks;
    world.publish("a", "2");
    assert_eq!(world.ready().len(), 4);
    for (early, late) in early.into_iter().zip(late) {
        assert_eq!(world.take(early), [block("1>2;")]);
        assert_eq!(world.take(late), [block("2;")]);
    }
    assert_eq!(world.hub.totals().frozen_blocks, encoded + 2);
    world.publish("a", "3");
    assert_eq!(world.ready().len(), 4);
    for client in early.into_iter().chain(late) {
        assert_eq!(world.take(client), [block("2>3;")]);
    }
    assert_eq!(world.hub.totals().frozen_blocks, encoded + 3);
}

#[test]
fn only_the_blocks_of_most_subscribers_are_of_the_sequence() {
    let mut world = World::new();
    let options = || SubscriptionOptions {
        is_sequenced: true,
        ..deltas()
    };
    let early = [world.listen("a", options()), world.listen("a", options())];
    world.publish("a", "1");
    world.ready();
    for client in early {
        assert_eq!(world.take(client), [block("1;@0-1#1")]);
    }
    let late = world.listen("a", options());
    world.publish("a", "2");
    world.ready();
    assert_eq!(world.take(late), [block("2;")]);
    for client in early {
        assert_eq!(world.take(client), [block("1>2;@1-2#2")]);
    }
    world.publish("a", "3");
    world.ready();
    assert_eq!(world.take(late), [block("2>3;@2-3#3")]);
}

#[test]
fn a_filter_decides_what_comes_before_a_publication() {
    let mut world = World::new();
    let filtered = world.listen(
        "a",
        SubscriptionOptions {
            filter: Some(std::sync::Arc::new(Contains("x"))),
            ..deltas()
        },
    );
    for (payload, expected) in [("x1", Some("x1;")), ("y", None), ("x2", Some("x1>x2;"))] {
        world.publish("a", payload);
        world.ready();
        let expected: Vec<Seen> = expected.map(block).into_iter().collect();
        assert_eq!(world.take(filtered), expected);
    }
}

#[test]
fn who_missed_something_gets_a_whole_payload() {
    let mut world = World::with_ring(2);
    let client = world.listen("a", deltas());
    world.publish("a", "1");
    assert_eq!(world.deliver(client), [block("1;")]);
    for payload in ["2", "3", "4"] {
        world.publish("a", payload);
    }
    let gap = Seen::Gap(Gap {
        missed: Some(1),
        cause: GapCause::RingEvicted,
    });
    assert_eq!(world.deliver(client), [gap, block("3;3>4;")]);
}

#[test]
fn a_gap_of_the_broker_changes_nothing_of_what_a_client_has() {
    let mut world = World::new();
    let client = world.listen("a", deltas());
    world.publish_at("a", "e", 1);
    assert_eq!(world.deliver(client), [block("e1;")]);
    world.publish_at("a", "e", 3);
    let gap = Seen::Gap(Gap {
        missed: Some(1),
        cause: GapCause::OffsetHole,
    });
    assert_eq!(world.deliver(client), [gap, block("e1>e3;")]);
}

#[test]
fn conflated_publications_are_deltas_from_what_was_delivered() {
    let interval = Duration::from_millis(100);
    let by_key = Conflate::LatestPerKey(JsonPointer::new("/k").unwrap());
    let rounds = [
        (["[1]", "[2]"], "[2];~1", "[1];[1]>[2];"),
        (["[3]", "[4]"], "[2]>[4];~1", "[2]>[3];[3]>[4];"),
    ];
    for (conflate, is_by_key) in [(Conflate::Latest, false), (by_key, true)] {
        let mut world = World::new();
        let client = world.listen(
            "a",
            SubscriptionOptions {
                batch_interval: interval,
                conflate: Some(conflate),
                ..deltas()
            },
        );
        assert_eq!(world.deliver(client), []);
        for (payloads, latest, each) in rounds {
            for payload in payloads {
                world.publish("a", payload);
            }
            world.ready();
            world.pass(interval);
            // These payloads have no key.
            let expected = if is_by_key { each } else { latest };
            assert_eq!(world.deliver(client), [block(expected)]);
        }
    }
}

#[test]
fn a_slow_client_gets_the_newest_publication_whole() {
    let mut world = World::with_ring(1);
    let client = world.listen(
        "a",
        SubscriptionOptions {
            slow: SlowPolicy::Conflate,
            ..deltas()
        },
    );
    world.publish("a", "1");
    assert_eq!(world.deliver(client), [block("1;")]);
    for payload in ["2", "3", "4"] {
        world.publish("a", payload);
    }
    assert_eq!(world.deliver(client), [block("4;~2")]);
    world.publish("a", "5");
    assert_eq!(world.deliver(client), [block("4>5;")]);
}

#[test]
fn history_begins_with_a_whole_payload_and_so_does_what_follows_it() {
    let mut world = World::new();
    let client = world.hub.connect();
    let subscription = world.join(client, "a", deltas());
    let history = (1..=3).map(|offset| positioned("e", offset));
    world.hub.replay(subscription, history);
    let start = Start::After(position("e", 3));
    world.hub.activate(world.now, subscription, start);
    assert_eq!(world.deliver(client), [block("e1;e1>e2;e2>e3;")]);
    world.publish_at("a", "e", 4);
    world.publish_at("a", "e", 5);
    assert_eq!(world.deliver(client), [block("e4;e4>e5;")]);
}

#[test]
fn what_deltas_need_is_kept_as_long_as_there_are_such_subscribers() {
    let mut world = World::new();
    let client = world.listen("a", deltas());
    let other = world.listen("a", text());
    world.publish("a", "1");
    world.ready();
    world.take(client);
    world.take(other);
    let held = world.hub.memory_use();
    assert_eq!((held.messages, held.message_bytes), (1, 513));
    let options = world.hub.subscription_options(client, &name("a"));
    assert!(options.unwrap().with_deltas);
    world.hub.unsubscribe(client, &name("a"));
    assert_eq!(world.hub.memory_use(), MemoryUse::default());
}

#[test]
fn a_payload_that_is_too_long_for_deltas_is_not_kept() {
    let mut world = World::new();
    let client = world.listen("a", deltas());
    for (bytes, messages) in [(fossil::BYTES_MAX, 1), (fossil::BYTES_MAX + 1, 0)] {
        let long = Publication::new(vec![b'x'; bytes].into());
        world.hub.publish(world.now, &name("a"), long);
        world.ready();
        world.take(client);
        assert_eq!(world.hub.memory_use().messages, messages);
    }
    world.publish("a", "1");
    assert_eq!(world.deliver(client), [block("1;")]);
}
