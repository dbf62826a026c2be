//! Counters of deliveries, and the labels they are counted under.

use std::time::Duration;

use linerate_filter::Evaluated;
use linerate_hub::{EncodingId, Publication, SubscriptionOptions, hub::Deliveries};

use crate::world::{World, text};

fn labelled(label: u16) -> SubscriptionOptions {
    SubscriptionOptions { label, ..text() }
}

fn meter(world: &World, label: u16, encoding: u8) -> Deliveries {
    let deliveries = world.hub.deliveries().into_iter();
    let mut same =
        deliveries.filter(|meter| (meter.label, meter.encoding) == (label, EncodingId(encoding)));
    same.next().unwrap()
}

#[test]
fn deliveries_are_counted_under_the_label_and_the_encoding_of_their_subscription() {
    let mut world = World::new();
    world.listen("a", labelled(1));
    world.listen("a", labelled(2));
    world.listen("a", labelled(2));
    let other = SubscriptionOptions::new(EncodingId(1));
    world.listen("b", SubscriptionOptions { label: 2, ..other });
    for client in world.ready() {
        world.take(client);
    }
    world.publish("a", "one");
    world.publish("a", "two");
    world.publish("b", "one");
    for client in world.ready() {
        world.take(client);
    }
    let counts = |meter: Deliveries| (meter.subscriptions, meter.blocks, meter.messages);
    assert_eq!(counts(meter(&world, 1, 0)), (1, 1, 2));
    assert_eq!(counts(meter(&world, 2, 0)), (2, 2, 4));
    assert_eq!(counts(meter(&world, 2, 1)), (1, 1, 1));
    assert_eq!(world.hub.totals().delivered_messages, 7);
    let client = world.all[0];
    world.hub.disconnect(client);
    assert_eq!(counts(meter(&world, 1, 0)), (0, 1, 2));
}

#[test]
fn waiting_counts_from_when_a_publication_arrived() {
    let mut world = World::new();
    let client = world.listen("a", text());
    world.ready();
    world.take(client);
    let since = world.now;
    world.now += Duration::from_millis(30);
    let channel = linerate_hub::ChannelName::new("a").unwrap();
    let publication = Publication::new("1".into());
    world.hub.publish_evaluated(
        world.now,
        since,
        &channel,
        publication,
        &Evaluated::default(),
    );
    world.ready();
    world.now += Duration::from_millis(15);
    world.take(client);
    let counts = meter(&world, 0, 0);
    assert_eq!(counts.delay, Duration::from_millis(45));
    // The bucket from 25 ms to 50 ms.
    assert_eq!(counts.by_delay[8], 1);
    assert_eq!(counts.by_delay.iter().sum::<u64>(), 1);
}
