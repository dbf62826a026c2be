//! Subscribers to patterns that may see only some of the sources.

use std::sync::Arc;

use linerate_hub::{ChannelName, GapCause, Publication, Scope, SlowPolicy, SubscriptionOptions};

use crate::world::{Contains, Seen, World, block, name, text};

/// Admits the sources whose names begin with a given prefix.
#[derive(Debug)]
struct Beginning(&'static str);

impl Scope for Beginning {
    fn name(&self) -> &str {
        self.0
    }

    fn admits(&self, source: Option<&ChannelName>) -> bool {
        source.is_some_and(|source| source.as_str().starts_with(self.0))
    }
}

fn scoped(beginning: &'static str) -> SubscriptionOptions {
    SubscriptionOptions {
        scope: Some(Arc::new(Beginning(beginning))),
        ..text()
    }
}

fn publish(world: &mut World, source: &str) {
    let publication = Publication::build(source.to_owned().into()).with_source(name(source));
    world
        .hub
        .publish(world.now, &name("*"), publication.finish());
}

#[test]
fn a_publication_reaches_only_subscribers_allowed_to_see_its_source() {
    let mut world = World::new();
    let (all, a) = (world.listen("*", text()), world.listen("*", scoped("a")));
    let other = world.listen("*", scoped("b"));
    let filtered = SubscriptionOptions {
        filter: Some(Arc::new(Contains("2"))),
        ..scoped("a")
    };
    let filtered = world.listen("*", filtered);
    for source in ["a1", "b2", "a2"] {
        publish(&mut world, source);
    }
    // The scope does not admit a publication without a source.
    world.publish("*", "2");
    world.ready();
    assert_eq!(world.take(all), [block("a1;b2;a2;2;")]);
    assert_eq!(world.take(a), [block("a1;a2;")]);
    assert_eq!(world.take(other), [block("b2;")]);
    assert_eq!(world.take(filtered), [block("a2;")]);
    assert_eq!(world.hub.totals().frozen_blocks, 4);
}

#[test]
fn subscribers_with_the_same_scope_share_a_block() {
    let mut world = World::new();
    let clients = [0; 10].map(|_| world.listen("*", scoped("a")));
    publish(&mut world, "a");
    world.ready();
    for client in clients {
        assert_eq!(world.take(client), [block("a;")]);
    }
    assert_eq!(world.hub.totals().frozen_blocks, 1);
}

#[test]
fn withheld_publications_are_neither_a_gap_nor_counted_in_one() {
    let mut world = World::with_ring(4);
    let slow = SubscriptionOptions {
        slow: SlowPolicy::DropOldest,
        ..scoped("a")
    };
    let client = world.listen("*", slow);
    for _ in 0..20 {
        publish(&mut world, "b");
    }
    publish(&mut world, "a");
    world.ready();
    assert_eq!(world.take(client), [block("a;")]);
    for source in ["a1", "b", "b", "a2", "b", "b"] {
        publish(&mut world, source);
    }
    world.ready();
    let seen = world.take(client);
    let [Seen::Gap(gap), rest] = &seen[..] else {
        panic!("{seen:?}");
    };
    assert_eq!((gap.missed, gap.cause), (Some(1), GapCause::RingEvicted));
    assert_eq!(*rest, block("a2;"));
}

#[test]
fn history_out_of_scope_is_withheld() {
    let mut world = World::new();
    let client = world.hub.connect();
    let subscription = world.join(client, "*", scoped("a"));
    let of = |source: &str| Publication::build(source.to_owned().into()).with_source(name(source));
    let history = ["a", "b"].map(|source| of(source).finish());
    world.hub.replay(subscription, history);
    world
        .hub
        .activate(world.now, subscription, linerate_hub::Start::Live);
    assert_eq!(world.deliver(client), [block("a;")]);
}
