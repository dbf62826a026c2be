//! Clients that are too slow (R02, R09), and the memory that they cost.

use std::time::Duration;

use linerate_hub::{
    ClientId, Conflate, Gap, GapCause, SlowPolicy, SubscriptionOptions,
    hub::{Lag, MemoryUse},
};

use crate::world::{Seen, World, block, name, text};

/// The overhead in bytes that the hub counts for each publication in addition to its payload.
const OVERHEAD_BYTES: usize = 512;

fn with(slow: SlowPolicy) -> SubscriptionOptions {
    SubscriptionOptions { slow, ..text() }
}

fn evicted(missed: u64) -> Seen {
    Seen::Gap(Gap {
        missed: Some(missed),
        cause: GapCause::RingEvicted,
    })
}

/// Adds a client that is reported ready and takes nothing.
fn stalled(world: &mut World, options: SubscriptionOptions) -> ClientId {
    stalled_in(world, "a", options)
}

fn stalled_in(world: &mut World, channel: &str, options: SubscriptionOptions) -> ClientId {
    let client = world.listen(channel, options);
    assert_eq!(world.ready(), [client]);
    client
}

#[test]
fn r02_a_stalled_client_holds_no_more_than_the_ring_and_delays_nobody() {
    let mut world = World::with_ring(100);
    let live = world.listen("a", text());
    world.ready();
    world.take(live);
    let stalled = stalled(&mut world, text());
    for number in 0..10_000 {
        let payload = number.to_string();
        world.publish("a", &payload);
        assert_eq!(world.deliver(live), [block(&format!("{payload};"))]);
        let held = world.hub.memory_use();
        assert!(
            held.messages <= 100 && held.block_bytes <= 256 * 1024,
            "{held:?}"
        );
    }
    assert_eq!(world.take_one(stalled), Some(evicted(9_900)));
    assert_eq!(world.take(stalled).len(), 100);
    assert_eq!(world.hub.memory_use(), MemoryUse::default());
}

#[test]
fn r02_a_client_that_is_not_writable_is_not_polled_again() {
    let mut world = World::new();
    let client = stalled(&mut world, text());
    world.publish("a", "1");
    world.publish("a", "2");
    assert_eq!(world.ready(), []);
    world.hub.handle_writable(client);
    assert_eq!(world.deliver(client), [block("1;2;")]);
    world.hub.handle_writable(client);
    assert_eq!(world.ready(), []);
}

#[test]
fn r02_the_ring_holds_as_many_messages_as_allowed_and_not_one_more() {
    for (messages, expected) in [(3, vec![]), (4, vec![evicted(1)])] {
        let mut world = World::with_ring(3);
        let client = stalled(&mut world, text());
        for number in 0..messages {
            world.publish("a", &number.to_string());
        }
        world.ready();
        let seen = world.take(client);
        assert_eq!(seen[..seen.len() - 1], expected);
    }
}

#[test]
fn r09_small_messages_count_with_their_overhead() {
    for (messages, expected) in [(3, vec![]), (4, vec![evicted(1)])] {
        let mut world = World::new();
        world.channel_options.ring_bytes_max = 3 * (OVERHEAD_BYTES + 1);
        let client = stalled(&mut world, text());
        for number in 0..messages {
            world.publish("a", &number.to_string());
        }
        world.ready();
        let seen = world.take(client);
        assert_eq!(seen[..seen.len() - 1], expected);
    }
}

#[test]
fn r09_a_million_small_messages_for_a_stalled_client_stay_within_the_ring() {
    let mut world = World::new();
    stalled(&mut world, text());
    for _ in 0..1_000_000 / if cfg!(debug_assertions) { 10 } else { 1 } {
        world.publish("a", "1");
    }
    let held = world.hub.memory_use();
    let options = world.channel_options;
    assert_eq!(held.messages as usize, options.ring_messages_max);
    assert!(held.message_bytes as usize <= options.ring_bytes_max);
}

#[test]
fn the_newest_publication_is_kept_however_large_it_is() {
    let mut world = World::new();
    world.channel_options.ring_bytes_max = 10;
    let client = stalled(&mut world, text());
    world.publish("a", "1");
    world.publish("a", "22");
    world.ready();
    assert_eq!(world.take(client), [evicted(1), block("22;")]);
}

#[test]
fn a_client_that_must_not_fall_behind_is_ended_even_if_it_reads_nothing() {
    let mut world = World::with_ring(2);
    let client = stalled(&mut world, with(SlowPolicy::Disconnect));
    world.publish("a", "1");
    world.publish("a", "2");
    assert_eq!(world.ready(), []);
    world.publish("a", "3");
    assert_eq!(world.deliver(client), [Seen::Slow(1)]);
    world.publish("a", "4");
    assert_eq!(world.ready(), []);
    assert_eq!(world.take(client), []);
    assert_eq!(world.hub.totals().slow_disconnects, 1);
    assert_eq!(world.hub.disconnect(client), [name("a")]);
}

#[test]
fn only_subscriptions_behind_the_ring_are_ended() {
    let mut world = World::with_ring(2);
    let options = with(SlowPolicy::Disconnect);
    let slow = stalled(&mut world, options.clone());
    let slower = stalled(&mut world, options.clone());
    let live = stalled(&mut world, options);
    world.take(live);
    world.publish("a", "1");
    assert_eq!(world.deliver(live), [block("1;")]);
    assert_eq!(world.take_one(slow), Some(block("1;")));
    world.publish("a", "2");
    assert_eq!(world.deliver(live), [block("2;")]);
    world.publish("a", "3");
    assert_eq!(world.ready(), [live, slower]);
    assert_eq!(world.take(slower), [Seen::Slow(1)]);
    assert_eq!(world.take(live), [block("3;")]);
    assert_eq!(world.take(slow), [block("2;"), block("3;")]);
}

#[test]
fn a_positioned_subscription_ends_with_a_gap() {
    let mut world = World::with_ring(1);
    let options = SubscriptionOptions {
        positioned: true,
        ..text()
    };
    let client = stalled(&mut world, options);
    world.publish("a", "1");
    world.publish("a", "2");
    world.ready();
    assert_eq!(world.take(client), [evicted(1)]);
    world.publish("a", "3");
    assert_eq!(world.take(client), []);
    world.ready();
    assert_eq!(world.take(client), []);
    assert_eq!(world.hub.memory_use(), MemoryUse::default());
}

#[test]
fn pending_publications_of_a_client_are_counted() {
    let mut world = World::with_ring(2);
    let client = stalled(&mut world, text());
    let lag = |world: &World| world.hub.lag(world.now, client).unwrap();
    assert_eq!(lag(&world), Lag::default());
    world.publish("a", "1");
    world.ready();
    world.pass(Duration::from_secs(1));
    world.publish("a", "22");
    world.publish("a", "333");
    world.ready();
    world.pass(Duration::from_secs(2));
    let expected = Lag {
        oldest: Some(Duration::from_secs(2)),
        messages: 3,
        bytes: 5,
    };
    assert_eq!(lag(&world), expected);
    world.take(client);
    assert_eq!(lag(&world), Lag::default());
    world.hub.disconnect(client);
    assert_eq!(world.hub.lag(world.now, client), None);
}

#[test]
fn a_publisher_is_told_before_the_ring_evicts_undelivered_publications() {
    let mut world = World::with_ring(10);
    let client = world.listen("a", text());
    world.ready();
    world.take(client);
    let pressing: Vec<bool> = (0..6).map(|_| world.publish("a", "1")).collect();
    assert_eq!(pressing, [false, false, false, false, true, true]);
    assert_eq!(world.deliver(client), [block("1;1;1;1;1;1;")]);
    assert!(!world.publish("a", "1"));
}

#[test]
fn publications_are_counted_by_their_outcome() {
    let mut world = World::with_ring(2);
    let client = stalled(&mut world, text());
    for payload in ["1", "22", "333"] {
        world.publish("a", payload);
    }
    world.ready();
    world.pass(Duration::from_secs(1));
    assert_eq!(world.take(client), [evicted(1), block("22;333;")]);
    let totals = world.hub.totals();
    assert_eq!((totals.published_messages, totals.published_bytes), (3, 6));
    assert_eq!((totals.delivered_messages, totals.delivered_bytes), (2, 7));
    assert_eq!((totals.frozen_blocks, totals.frozen_bytes), (1, 7));
    assert_eq!(totals.delivered_delay, Duration::from_secs(1));
    assert_eq!(totals.dropped_evicted, 1);
    let place = GapCause::ALL
        .iter()
        .position(|cause| *cause == GapCause::RingEvicted);
    assert_eq!(totals.gaps[place.unwrap()], 1);
    assert_eq!(totals.gaps.iter().sum::<u64>(), 1);
}

#[test]
fn held_bytes_add_up() {
    let overhead = OVERHEAD_BYTES as u64;
    let mut world = World::with_ring(2);
    let newest = SubscriptionOptions {
        conflate: Some(Conflate::Latest),
        ..text()
    };
    for (channel, options) in [
        ("a", text()),
        ("b", text()),
        ("c", newest.clone()),
        ("d", newest),
    ] {
        stalled_in(&mut world, channel, options);
        for payload in ["1", "22", "333"] {
            world.publish(channel, payload);
        }
    }
    world.ready();
    let in_rings = 4 * (2 * overhead + 5);
    let held = world.hub.memory_use();
    // If only the newest publication is needed, the hub keeps it after the ring has lost it.
    assert_eq!((held.messages, held.block_bytes), (4 * 2 + 2, 0));
    assert!(held.message_bytes > in_rings + 2, "{held:?}");
    let beside = held.message_bytes - in_rings;
    assert_eq!(beside % 2, 0, "two alike");

    // A client takes blocks, which are kept for other clients at the same place.
    let client = stalled_in(&mut world, "e", text());
    let other = stalled_in(&mut world, "e", text());
    world.publish("e", "4444");
    world.ready();
    assert_eq!(world.take(client), [block("4444;")]);
    let more = world.hub.memory_use();
    assert!((5..200).contains(&more.block_bytes), "{more:?}");
    assert_eq!(more.messages, held.messages + 1);
    assert_eq!(more.message_bytes, held.message_bytes + overhead + 4);
    world.take(other);
    assert_eq!(world.hub.memory_use(), held);
}

#[test]
fn slow_clients_are_reported() {
    let mut world = World::with_ring(2);
    let client = stalled(&mut world, with(SlowPolicy::Disconnect));
    for payload in ["1", "2"] {
        world.publish("a", payload);
    }
    world.ready();
    assert!(!world.hub.is_slow(client));
    world.publish("a", "3");
    world.ready();
    assert!(world.hub.is_slow(client));
    world.hub.disconnect(client);
    assert!(!world.hub.is_slow(client));
}
