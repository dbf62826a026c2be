//! The transition from history to live publications (G05), and the meaning of positions.

use linerate_hub::{
    ClientId, Gap, GapCause, JsonPointer, Start, SubscriptionId, SubscriptionOptions,
};

use std::sync::Arc;

use crate::world::{Contains, Seen, World, block, name, position, positioned, text};

fn gap(missed: Option<u64>, cause: GapCause) -> Seen {
    Seen::Gap(Gap { missed, cause })
}

fn join(world: &mut World) -> (ClientId, SubscriptionId) {
    let client = world.hub.connect();
    (client, world.join(client, "a", text()))
}

fn activate_after(world: &mut World, subscription: SubscriptionId, epoch: &str, offset: u64) {
    let start = Start::After(position(epoch, offset));
    world.hub.activate(world.now, subscription, start);
    world.ready();
}

#[test]
fn g05_what_is_published_between_history_and_live_comes_once() {
    // Every combination of the newest publication in the history and what was live when it was
    // read.
    for newest in 0..=10 {
        for live_first in 1..=newest + 1 {
            let mut world = World::new();
            let (client, subscription) = join(&mut world);
            for offset in live_first..=8 {
                world.publish_at("a", "e", offset);
            }
            activate_after(&mut world, subscription, "e", newest);
            for offset in live_first.max(9)..=12 {
                world.publish_at("a", "e", offset);
            }
            world.ready();
            let expected: String = (newest + 1..=12)
                .map(|offset| format!("e{offset};"))
                .collect();
            assert_eq!(
                world.take(client),
                [block(&expected)],
                "{newest} {live_first}"
            );
        }
    }
}

#[test]
fn g05_history_comes_before_live_publications() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.publish_at("a", "e", 3);
    world.publish_at("a", "e", 4);
    let history = (1..=3).map(|offset| positioned("e", offset));
    world.hub.replay(subscription, history);
    activate_after(&mut world, subscription, "e", 3);
    assert_eq!(world.take(client), [block("e1;e2;e3;"), block("e4;")]);
}

#[test]
fn g05_a_hole_behind_the_history_is_told_with_its_count() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.publish_at("a", "e", 8);
    activate_after(&mut world, subscription, "e", 4);
    let hole = gap(Some(3), GapCause::OffsetHole);
    assert_eq!(world.take(client), [hole, block("e8;")]);
}

#[test]
fn g05_a_hole_filled_by_the_history_is_not_reported() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    for offset in [1, 2, 5, 6] {
        world.publish_at("a", "e", offset);
    }
    activate_after(&mut world, subscription, "e", 5);
    assert_eq!(world.take(client), [block("e6;")]);
}

#[test]
fn g05_a_lost_link_without_a_loss_is_not_reported() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.publish_at("a", "e", 1);
    world.hub.handle_gap(world.now, None, GapCause::LinkLost);
    world.publish_at("a", "e", 2);
    activate_after(&mut world, subscription, "e", 1);
    assert_eq!(world.take(client), [block("e2;")]);
}

#[test]
fn g05_a_cut_link_is_told_though_nothing_is_published_after_it() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    activate_after(&mut world, subscription, "e", 1);
    assert_eq!(world.take(client), []);
    world.hub.handle_gap(world.now, None, GapCause::LinkLost);
    assert_eq!(world.deliver(client), [gap(None, GapCause::LinkLost)]);
}

#[test]
fn g05_publications_evicted_before_the_history_arrives_are_counted() {
    let mut world = World::with_ring(2);
    let (client, subscription) = join(&mut world);
    for offset in 1..=9 {
        world.publish_at("a", "e", offset);
    }
    activate_after(&mut world, subscription, "e", 5);
    let lost = gap(Some(2), GapCause::RingEvicted);
    assert_eq!(world.take(client), [lost, block("e8;e9;")]);
}

#[test]
fn g05_publications_of_a_newer_epoch_than_the_history_are_a_gap() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.publish_at("a", "f", 1);
    activate_after(&mut world, subscription, "e", 7);
    let changed = gap(None, GapCause::EpochChanged);
    assert_eq!(world.take(client), [changed, block("f1;")]);
}

#[test]
fn g05_publications_of_an_older_epoch_than_the_history_are_skipped() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.publish_at("a", "e", 7);
    world.publish_at("a", "f", 1);
    world.publish_at("a", "f", 2);
    activate_after(&mut world, subscription, "f", 1);
    assert_eq!(world.take(client), [block("f2;")]);
}

#[test]
fn holes_epochs_and_repetitions_are_found_by_position() {
    let mut world = World::new();
    let client = world.listen("a", text());
    for (epoch, offset) in [("e", 1), ("e", 2), ("e", 2), ("e", 1), ("e", 5), ("f", 9)] {
        world.publish_at("a", epoch, offset);
    }
    let expected = [
        block("e1;e2;"),
        gap(Some(2), GapCause::OffsetHole),
        block("e5;"),
        gap(None, GapCause::EpochChanged),
        block("f9;"),
    ];
    assert_eq!(world.deliver(client), expected);
    assert_eq!(world.hub.totals().dropped_duplicate, 2);
}

#[test]
fn gaps_beyond_the_limit_are_reported_as_one_of_unknown_size() {
    let mut world = World::new();
    let client = world.listen("a", text());
    assert_eq!(world.ready(), [client]);
    for offset in 0..=17 {
        world.publish_at("a", "e", 1 + 2 * offset);
    }
    world.ready();
    let seen = world.take(client);
    let gaps = seen.iter().filter(|seen| matches!(seen, Seen::Gap(_)));
    let (unknown, known): (Vec<_>, Vec<_>) =
        gaps.partition(|seen| matches!(seen, Seen::Gap(gap) if gap.missed.is_none()));
    assert_eq!((unknown.len(), known.len()), (1, 16));
    assert_eq!(seen[0], gap(None, GapCause::OffsetHole));
}

#[test]
fn history_is_filtered_and_conflated() {
    let mut world = World::new();
    let client = world.hub.connect();
    let options = SubscriptionOptions {
        filter: Some(std::sync::Arc::new(crate::world::Contains("x"))),
        conflate: Some(linerate_hub::Conflate::LatestPerKey(
            JsonPointer::new("/k").unwrap(),
        )),
        ..text()
    };
    let subscription = world.join(client, "a", options);
    let payloads = [
        r#"{"k":"x1"}"#,
        r#"{"k":"y"}"#,
        r#"{"k":"x2"}"#,
        r#"{"k":"x1"}"#,
    ];
    let history = payloads.map(|payload| linerate_hub::Publication::new(payload.into()));
    world.hub.replay(subscription, history);
    world.hub.activate(world.now, subscription, Start::Live);
    let expected = r#"{"k":"x2"};{"k":"x1"};~1"#;
    assert_eq!(world.deliver(client), [block(expected)]);
}

#[test]
fn history_is_delivered_in_blocks_of_limited_size() {
    let mut world = World::new();
    let client = world.hub.connect();
    let options = SubscriptionOptions {
        batch_bytes_max: 4,
        ..text()
    };
    let subscription = world.join(client, "a", options);
    let history = (1..=5).map(|offset| positioned("e", offset));
    world.hub.replay(subscription, history);
    activate_after(&mut world, subscription, "e", 5);
    let expected = [block("e1;e2;"), block("e3;e4;"), block("e5;")];
    assert_eq!(world.take(client), expected);
}

#[test]
fn operations_on_an_ended_subscription_are_refused() {
    let mut world = World::new();
    let (client, subscription) = join(&mut world);
    world.hub.unsubscribe(client, &name("a"));
    let (other, _) = join(&mut world);
    world.publish("a", "1");
    world.hub.replay(subscription, [positioned("e", 1)]);
    world.hub.activate(world.now, subscription, Start::Live);
    assert_eq!(world.ready(), []);
    assert_eq!(world.take(other), []);
    assert_eq!(world.take(client), []);
}

/// Joins with a filter that lets only `e7` pass.
fn join_filtered(world: &mut World) -> (ClientId, SubscriptionId) {
    let client = world.hub.connect();
    let options = SubscriptionOptions {
        filter: Some(Arc::new(Contains("7"))),
        ..text()
    };
    (client, world.join(client, "a", options))
}

#[test]
fn filtered_publications_after_a_position_are_not_a_gap() {
    for known in 0..=6 {
        let mut world = World::new();
        let (client, subscription) = join_filtered(&mut world);
        activate_after(&mut world, subscription, "e", known);
        assert_eq!(world.take(client), []);
        // Flush after each publication, so that it is dropped before the next one arrives.
        for offset in 1..=6 {
            world.publish_at("a", "e", offset);
            assert_eq!(world.ready(), [], "{known} {offset}");
        }
        world.publish_at("a", "e", 7);
        world.ready();
        assert_eq!(world.take(client), [block("e7;")], "{known}");
    }
}

#[test]
fn a_hole_after_a_position_is_reported_even_if_its_end_does_not_match() {
    let mut world = World::new();
    let (client, subscription) = join_filtered(&mut world);
    activate_after(&mut world, subscription, "e", 1);
    assert_eq!(world.take(client), []);
    for offset in [4, 5, 6, 7] {
        world.publish_at("a", "e", offset);
        world.ready();
    }
    let hole = gap(Some(2), GapCause::OffsetHole);
    assert_eq!(world.take(client), [hole, block("e7;")]);
}

#[test]
fn a_position_that_is_older_than_the_subscription_leaves_a_hole() {
    let mut world = World::new();
    // Another subscriber keeps the stream alive.
    let other = world.listen("a", text());
    for offset in 1..=5 {
        world.publish_at("a", "e", offset);
        world.ready();
        world.take(other);
    }
    let (client, subscription) = join_filtered(&mut world);
    activate_after(&mut world, subscription, "e", 2);
    assert_eq!(world.take(client), []);
    for offset in [6, 7] {
        world.publish_at("a", "e", offset);
        world.ready();
        world.take(other);
    }
    let hole = gap(Some(3), GapCause::OffsetHole);
    assert_eq!(world.take(client), [hole, block("e7;")]);
}
