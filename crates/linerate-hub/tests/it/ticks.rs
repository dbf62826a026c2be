//! Ends of batches.

use std::time::Duration;

use linerate_hub::{HubOptions, SubscriptionOptions};

use crate::world::{Contains, Seen, World, block, text};

const INTERVAL: Duration = Duration::from_millis(200);

fn ticking() -> SubscriptionOptions {
    SubscriptionOptions {
        batch_interval: INTERVAL,
        ..text()
    }
}

#[test]
fn the_ticks_of_channels_are_spread_over_the_interval() {
    let mut world = World::with(HubOptions {
        seed: 3,
        ..HubOptions::default()
    });
    for index in 0..1_000 {
        let client = world.listen(&index.to_string(), ticking());
        world.ready();
        world.take(client);
        world.publish(&index.to_string(), "1");
    }
    assert_eq!(world.ready(), []);
    let start = world.now;
    let mut ready = 0;
    for twentieth in 1..=20 {
        world.pass(INTERVAL / 20);
        let count = world.ready().len();
        assert!(
            (20..=90).contains(&count),
            "{count} ticks in part {twentieth}"
        );
        ready += count;
    }
    assert_eq!(world.now, start + INTERVAL);
    assert_eq!(ready, 1_000);
    assert_eq!(world.hub.poll_timeout(), None);
}

#[test]
fn the_shortest_interval_is_that_of_remaining_subscribers() {
    let mut world = World::new();
    assert_eq!(world.hub.batch_interval_min(), None);
    let patient = world.listen("a", ticking());
    assert_eq!(world.hub.batch_interval_min(), Some(INTERVAL));
    let hasty = [world.listen("a", text()), world.listen("b", text())];
    for client in hasty {
        assert_eq!(world.hub.batch_interval_min(), Some(Duration::ZERO));
        world.hub.disconnect(client);
    }
    assert_eq!(world.hub.batch_interval_min(), Some(INTERVAL));
    world.hub.disconnect(patient);
    assert_eq!(world.hub.batch_interval_min(), None);
}

#[test]
fn subscribers_of_a_channel_with_the_same_interval_tick_together() {
    let mut world = World::new();
    let early = world.listen("a", ticking());
    world.ready();
    world.take(early);
    world.pass(INTERVAL / 3);
    let late = world.listen("a", ticking());
    world.ready();
    world.take(late);
    world.publish("a", "1");
    world.ready();
    let tick = world.hub.poll_timeout().unwrap();
    world.pass(tick - world.now);
    assert_eq!(world.ready().len(), 2);
    assert_eq!(world.take(early), [block("1;")]);
    assert_eq!(world.take(late), [block("1;")]);
    assert_eq!(world.hub.totals().frozen_blocks, 1);
}

#[test]
fn a_steady_stream_makes_one_block_per_tick() {
    let mut world = World::new();
    let client = world.listen("a", ticking());
    world.ready();
    world.take(client);
    let mut blocks = 0;
    for _ in 0..1_000 {
        world.publish("a", "1");
        world.ready();
        world.pass(Duration::from_millis(10));
        world.ready();
        blocks += world.take(client).len();
    }
    assert!((49..=50).contains(&blocks), "{blocks}");
}

#[test]
fn a_client_that_can_take_more_between_ticks_waits_for_the_next() {
    let mut world = World::new();
    let client = world.listen("a", ticking());
    world.publish("a", "1");
    assert_eq!(world.ready(), [client]);
    world.pass(INTERVAL);
    world.publish("a", "2");
    assert_eq!(world.ready(), []);
    world.hub.handle_writable(client);
    assert_eq!(world.deliver(client), [block("1;")]);
    world.pass(INTERVAL);
    assert_eq!(world.deliver(client), [block("2;")]);
}

#[test]
fn a_gap_does_not_wait_for_the_tick() {
    let mut world = World::new();
    let client = world.listen("a", ticking());
    world.ready();
    world.take(client);
    world.publish("a", "1");
    assert_eq!(world.ready(), []);
    world
        .hub
        .handle_gap(world.now, None, linerate_hub::GapCause::LinkLost);
    let seen = world.deliver(client);
    assert_eq!(seen[0], block("1;"));
    assert!(matches!(seen[1..], [Seen::Gap(_)]), "{seen:?}");
}

#[test]
fn ticks_of_former_subscribers_do_nothing() {
    let mut world = World::new();
    for _ in 0..1_000 {
        let client = world.listen("a", ticking());
        world.ready();
        world.take(client);
        world.publish("a", "1");
        assert_eq!(world.ready(), []);
        world.hub.disconnect(client);
    }
    world.pass(INTERVAL);
    assert_eq!(world.ready(), []);
    assert_eq!(world.hub.poll_timeout(), None);
}

#[test]
fn evictions_from_a_batch_are_reported_before_the_tick() {
    let mut world = World::with_ring(1);
    let options = SubscriptionOptions {
        filter: Some(std::sync::Arc::new(Contains("x"))),
        ..ticking()
    };
    let client = world.listen("a", options);
    world.ready();
    world.take(client);
    world.publish("a", "x");
    world.publish("a", "y");
    assert!(matches!(world.deliver(client)[..], [Seen::Gap(_)]));
}
