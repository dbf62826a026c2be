//! Filters that are evaluated in slices, while clients come and go in between.

use std::sync::Arc;

use linerate_filter::{Evaluated, Limits};
use linerate_hub::{ChannelName, ClientId, Publication, SubscriptionOptions};

use crate::world::{Seen, World, text};

fn with(filter: &str) -> SubscriptionOptions {
    let filter = linerate_filter::Filter::new(filter, &Limits::default()).unwrap();
    SubscriptionOptions {
        filter: Some(Arc::new(Arc::new(filter))),
        ..text()
    }
}

#[test]
fn joining_or_leaving_between_slices_causes_no_loss_or_excess() {
    let mut world = World::new();
    let channel = ChannelName::new("a").unwrap();
    let listen = |world: &mut World, filter: &str| world.listen("a", with(filter));
    let stays = ["a > 0", "a > 1"].map(|filter| listen(&mut world, filter));
    let goes = listen(&mut world, "a > 2");
    let publication = Publication::new(r#"{"a":2}"#.into());
    let mut known = Evaluated::default();
    let mut slice = |world: &World| {
        world
            .hub
            .evaluate(&channel, &publication, &mut known, || true)
    };
    while !slice(&world) {}
    world.hub.disconnect(goes);
    let comes = ["a == 2", "a != 2"].map(|filter| listen(&mut world, filter));
    assert!(!slice(&world), "one of two filters is left");
    let late = listen(&mut world, "a >= 2");
    let now = world.now;
    let publication = publication.clone();
    (world.hub).publish_evaluated(now, now, &channel, publication, &known);
    world.ready();
    let mut count = |client: ClientId| world.take(client).len();
    assert_eq!(stays.map(&mut count), [1, 1]);
    assert_eq!(comes.map(&mut count), [1, 0]);
    assert_eq!(count(late), 1, "not evaluated before it was published");
}

#[test]
fn searched_bytes_are_those_of_the_payload_for_each_search() {
    let mut world = World::new();
    let channel = ChannelName::new("a").unwrap();
    let publication = Publication::new("0123456789".into());
    let searched = |world: &World| world.hub.searched_bytes(&channel, &publication);
    assert_eq!(searched(&world), 0, "the channel has no subscribers");
    world.listen("a", with("a.contains('x') || a.endsWith('y')"));
    world.listen("a", with("a == 1"));
    assert_eq!(searched(&world), 20);
    let known = &mut Evaluated::default();
    let nobody = ChannelName::new("b").unwrap();
    assert!(world.hub.evaluate(&nobody, &publication, known, || true));
    assert_eq!(world.take(world.all[0]), Vec::<Seen>::new());
}
