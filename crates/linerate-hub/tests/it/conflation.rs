//! Conflation: newer publications replace older ones.

use std::time::Duration;

use linerate_hub::{Conflate, Gap, GapCause, JsonPointer, SlowPolicy, SubscriptionOptions};

use crate::world::{Seen, World, block, text};

const INTERVAL: Duration = Duration::from_millis(200);

fn by_key() -> SubscriptionOptions {
    let pointer = JsonPointer::new("/k").unwrap();
    SubscriptionOptions {
        conflate: Some(Conflate::LatestPerKey(pointer)),
        slow: SlowPolicy::Conflate,
        ..text()
    }
}

fn latest() -> SubscriptionOptions {
    SubscriptionOptions {
        conflate: Some(Conflate::Latest),
        ..text()
    }
}

fn update(key: &str, value: u64) -> String {
    format!(r#"{{"k":"{key}","v":{value}}}"#)
}

#[test]
fn a_tick_holds_the_newest_of_each_key() {
    let mut world = World::new();
    let options = SubscriptionOptions {
        batch_interval: INTERVAL,
        ..by_key()
    };
    let client = world.listen("a", options);
    world.ready();
    world.take(client);
    for (key, value) in [("x", 1), ("y", 2), ("x", 3), ("z", 4), ("y", 5)] {
        world.publish("a", &update(key, value));
    }
    assert_eq!(world.ready(), []);
    world.pass(INTERVAL);
    let newest = [update("x", 3), update("z", 4), update("y", 5)];
    let expected = format!("{};~2", newest.join(";"));
    assert_eq!(world.deliver(client), [block(&expected)]);
}

#[test]
fn publications_without_a_key_are_not_conflated_by_key() {
    let mut world = World::new();
    let client = world.listen("a", by_key());
    for payload in ["1", "text", "{}", "1"] {
        world.publish("a", payload);
    }
    assert_eq!(world.deliver(client), [block("1;text;{};1;")]);
}

#[test]
fn latest_is_one_publication() {
    let mut world = World::new();
    let client = world.listen("a", latest());
    for payload in ["1", "2", "3"] {
        world.publish("a", payload);
    }
    assert_eq!(world.deliver(client), [block("3;~2")]);
}

#[test]
fn nothing_is_conflated_over_a_gap() {
    let mut world = World::new();
    let client = world.listen("a", latest());
    world.publish("a", "1");
    world.publish("a", "2");
    world.hub.handle_gap(world.now, None, GapCause::LinkLost);
    world.publish("a", "3");
    world.publish("a", "4");
    let gap = Gap {
        missed: None,
        cause: GapCause::LinkLost,
    };
    let expected = [block("2;~1"), Seen::Gap(gap), block("4;~1")];
    assert_eq!(world.deliver(client), expected);
}

#[test]
fn a_slow_client_gets_the_newest_of_each_key_though_the_ring_has_lost_it() {
    let mut world = World::with_ring(3);
    let slow = world.listen("a", by_key());
    assert_eq!(world.ready(), [slow]);
    world.publish("a", &update("rare", 0));
    for value in 1..100 {
        world.publish("a", &update("often", value));
        world.publish("a", &update("other", value));
    }
    world.hub.handle_writable(slow);
    assert_eq!(world.ready(), [slow]);
    let newest = [update("rare", 0), update("often", 99), update("other", 99)];
    let expected = format!("{};~196", newest.join(";"));
    assert_eq!(world.take(slow), [block(&expected)]);
}

#[test]
fn more_keys_than_the_ring_may_hold_are_a_gap() {
    let mut world = World::with_ring(2);
    let slow = world.listen("a", by_key());
    for value in 0..6 {
        world.publish("a", &update(&value.to_string(), value));
    }
    let gap = Gap {
        missed: None,
        cause: GapCause::RingEvicted,
    };
    let newest = [2, 3, 4, 5].map(|value| update(&value.to_string(), value));
    let expected = format!("{};", newest.join(";"));
    assert_eq!(world.deliver(slow), [Seen::Gap(gap), block(&expected)]);
}

#[test]
fn a_long_tick_loses_nothing_to_a_short_ring() {
    let mut world = World::with_ring(3);
    let options = SubscriptionOptions {
        batch_interval: INTERVAL,
        slow: SlowPolicy::Disconnect,
        ..by_key()
    };
    let client = world.listen("a", options);
    world.ready();
    world.take(client);
    for value in 0..50 {
        world.publish("a", &update("x", value));
        world.publish("a", &update("y", value));
        world.publish("a", &update("z", value));
        assert_eq!(world.ready(), []);
    }
    world.pass(INTERVAL);
    let newest = [update("x", 49), update("y", 49), update("z", 49)];
    let expected = format!("{};~147", newest.join(";"));
    assert_eq!(world.deliver(client), [block(&expected)]);
}

#[test]
fn a_slow_client_without_conflation_gets_the_newest() {
    let mut world = World::with_ring(2);
    let options = SubscriptionOptions {
        slow: SlowPolicy::Conflate,
        ..text()
    };
    let client = world.listen("a", options);
    for payload in ["1", "2", "3", "4"] {
        world.publish("a", payload);
    }
    assert_eq!(world.deliver(client), [block("4;~3")]);
    world.publish("a", "5");
    world.publish("a", "6");
    assert_eq!(world.deliver(client), [block("5;6;")]);
}

#[test]
fn a_conflated_block_is_limited_in_bytes() {
    let mut world = World::new();
    let size = update("a", 0).len();
    for (batch_bytes_max, blocks) in [(2 * size, 2), (2 * size - 1, 4)] {
        let options = SubscriptionOptions {
            batch_bytes_max,
            ..by_key()
        };
        let client = world.listen("a", options);
        for (key, value) in [("a", 0), ("b", 1), ("a", 2), ("c", 3)] {
            world.publish("a", &update(key, value));
        }
        let seen = world.deliver(client);
        assert_eq!(seen.len(), blocks, "{seen:?}");
        world.hub.disconnect(client);
    }
}
