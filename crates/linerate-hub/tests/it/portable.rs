//! A hub that continues the channels of another one.

use std::time::Duration;

use linerate_hub::{
    Conflate, Gap, GapCause, HubOptions, SlowPolicy, SubscriptionOptions,
    hub::{ChannelIdTooLarge, ChannelState},
};

use crate::world::{Contains, Seen, World, block, name, position, text};

#[test]
fn a_continued_channel_keeps_its_number_and_new_ones_get_others() {
    let mut world = World::new();
    let state = ChannelState {
        id: 3,
        position: None,
    };
    assert_eq!(world.hub.restore(name("d"), state.clone()), Ok(()));
    for channel in ["a", "d", "b"] {
        world.listen(channel, text());
    }
    assert_eq!(world.hub.channel_state("d"), Some(state));
    assert_eq!(world.hub.channel_id("d"), Some(3));
    let others = ["a", "b"].map(|channel| world.hub.channel_id(channel));
    assert_eq!(others, [Some(4), Some(6)]);
}

#[test]
fn a_number_without_room_for_new_channels_is_refused() {
    let mut world = World::new();
    let id = ChannelState::ID_MAX + 1;
    let state = ChannelState { id, position: None };
    let refused = world.hub.restore(name("a"), state);
    assert_eq!(refused, Err(ChannelIdTooLarge { id }));
}

#[test]
fn a_continued_channel_drops_what_is_known_and_reports_what_is_missing() {
    for (first, seen) in [
        (4, vec![block("x6;")]),
        (6, vec![block("x6;")]),
        (
            8,
            vec![
                Seen::Gap(Gap {
                    missed: Some(2),
                    cause: GapCause::OffsetHole,
                }),
                block("x8;"),
            ],
        ),
    ] {
        let mut world = World::new();
        let state = ChannelState {
            id: 0,
            position: Some(position("x", 5)),
        };
        world.hub.restore(name("a"), state).unwrap();
        let client = world.listen("a", text());
        for offset in first..=first.max(6) {
            world.publish_at("a", "x", offset);
        }
        world.ready();
        assert_eq!(world.take(client), seen, "from {first}");
    }
}

#[test]
fn states_of_channels_without_a_subscription_are_forgotten() {
    let mut world = World::new();
    let state = ChannelState {
        id: 3,
        position: None,
    };
    world.hub.restore(name("a"), state).unwrap();
    world.hub.end_restoring();
    world.listen("a", text());
    assert_eq!(world.hub.channel_id("a"), Some(4));
}

#[test]
fn batches_are_released_before_they_are_due() {
    let mut world = World::new();
    let client = world.listen(
        "a",
        SubscriptionOptions {
            batch_interval: Duration::from_secs(1),
            ..text()
        },
    );
    world.ready();
    world.take(client);
    world.publish("a", "1");
    assert_eq!(world.ready(), []);
    world.hub.release_all(world.now);
    assert_eq!(world.ready(), [client]);
    assert_eq!(world.take(client), [block("1;")]);
    world.pass(Duration::from_secs(2));
    assert_eq!(world.ready(), []);
}

#[test]
fn the_options_of_a_subscription_are_returned_as_they_were() {
    let mut world = World::with(HubOptions::default());
    let options = SubscriptionOptions {
        filter: Some(std::sync::Arc::new(Contains("x"))),
        batch_interval: Duration::from_millis(200),
        batch_bytes_max: 7_000,
        conflate: Some(Conflate::Latest),
        slow: SlowPolicy::Disconnect,
        positioned: true,
        is_sequenced: true,
        label: 3,
        ..text()
    };
    let client = world.listen("a", options.clone());
    let found = world.hub.subscription_options(client, &name("a")).unwrap();
    assert_eq!(format!("{found:?}"), format!("{options:?}"));
    let other = world.hub.subscription_options(client, &name("b"));
    assert!(other.is_none());
}
