//! Limits, and floods that exceed them (R08, R12).

use std::{sync::Arc, time::Duration};

use linerate_hub::{
    ChannelOptions, EncodingId, Filter, Hub, HubOptions, Publication, SubscribeError,
    SubscriptionOptions, channel::NAME_BYTES_MAX, hub::MemoryUse,
};

use crate::world::{Contains, Seen, World, block, name, text};

/// A filter that matches nothing and differs from all others.
#[derive(Debug)]
struct Nothing(String);

impl Filter for Nothing {
    fn expression(&self) -> &str {
        &self.0
    }

    fn admits(&self, _: &Publication) -> bool {
        false
    }
}

fn subscribe(
    world: &mut World,
    client: linerate_hub::ClientId,
    channel: &str,
    options: SubscriptionOptions,
) -> Result<(), SubscribeError> {
    let channel_options = ChannelOptions::default();
    let hub = &mut world.hub;
    hub.subscribe(world.now, client, name(channel), channel_options, options)
        .map(drop)
}

#[test]
fn r08_subscriptions_of_a_client_are_limited() {
    let mut world = World::with(HubOptions {
        subscriptions_max: 3,
        ..HubOptions::default()
    });
    let client = world.hub.connect();
    for channel in ["a", "b", "c"] {
        assert_eq!(subscribe(&mut world, client, channel, text()), Ok(()));
    }
    let error = subscribe(&mut world, client, "d", text()).unwrap_err();
    let expected = SubscribeError::TooManySubscriptions {
        subscriptions: 3,
        subscriptions_max: 3,
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string().matches('3').count(), 2, "{error}");
    assert!(!world.hub.has_channel("d"));
    world.hub.unsubscribe(client, &name("a"));
    assert_eq!(subscribe(&mut world, client, "d", text()), Ok(()));
}

#[test]
fn r08_filters_of_a_channel_are_limited() {
    let mut world = World::with(HubOptions {
        channel_filters_max: 2,
        ..HubOptions::default()
    });
    let with = |filter: &str| SubscriptionOptions {
        filter: Some(Arc::new(Nothing(filter.to_owned()))),
        ..text()
    };
    let clients: Vec<_> = (0..4).map(|_| world.hub.connect()).collect();
    for (client, filter) in clients.iter().zip(["x", "y", "x"]) {
        assert_eq!(subscribe(&mut world, *client, "a", with(filter)), Ok(()));
    }
    let error = subscribe(&mut world, clients[3], "a", with("z")).unwrap_err();
    let expected = SubscribeError::TooManyChannelFilters {
        filters: 2,
        channel_filters_max: 2,
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string().matches('2').count(), 2, "{error}");
    assert_eq!(subscribe(&mut world, clients[3], "a", text()), Ok(()));
    world.hub.disconnect(clients[1]);
    world.hub.unsubscribe(clients[3], &name("a"));
    assert_eq!(subscribe(&mut world, clients[3], "a", with("z")), Ok(()));
}

#[test]
fn searches_by_the_filters_of_a_channel_are_limited() {
    let mut world = World::with(HubOptions {
        channel_searches_max: 5,
        ..HubOptions::default()
    });
    let with = |filter: &str| {
        let filter = linerate_filter::Filter::new(filter, &linerate_filter::Limits::default());
        SubscriptionOptions {
            filter: Some(Arc::new(Arc::new(filter.unwrap()))),
            ..text()
        }
    };
    let clients: Vec<_> = (0..5).map(|_| world.hub.connect()).collect();
    let one = r#"a.contains("x")"#;
    for (client, filter) in clients.iter().zip([one, "size(a) > 1", one]) {
        assert_eq!(subscribe(&mut world, *client, "a", with(filter)), Ok(()));
    }
    let error = subscribe(&mut world, clients[3], "a", with(r#"b.endsWith("x")"#)).unwrap_err();
    let expected = SubscribeError::TooManyChannelSearches {
        searches: 6,
        channel_searches_max: 5,
    };
    assert_eq!(error, expected);
    let message = error.to_string();
    assert!(
        message.contains("6 searches") && message.contains("at most 5"),
        "{message}"
    );
    let cheap = with("b == 1");
    assert_eq!(
        subscribe(&mut world, clients[3], "a", cheap),
        Ok(()),
        "this filter needs no searches"
    );
    world.hub.disconnect(clients[1]);
    assert_eq!(
        subscribe(&mut world, clients[4], "a", with(r#"b.endsWith("x")"#)),
        Ok(())
    );
}

#[test]
fn limits_of_a_client_are_checked_before_those_of_a_channel() {
    let mut world = World::with(HubOptions {
        channel_filters_max: 1,
        client_filters_max: 1,
        ..HubOptions::default()
    });
    let with = |filter: &str| SubscriptionOptions {
        filter: Some(Arc::new(Nothing(filter.to_owned()))),
        ..text()
    };
    let clients: Vec<_> = (0..2).map(|_| world.hub.connect()).collect();
    assert_eq!(subscribe(&mut world, clients[0], "a", with("x")), Ok(()));
    assert_eq!(subscribe(&mut world, clients[1], "b", with("y")), Ok(()));
    let error = subscribe(&mut world, clients[1], "a", with("z")).unwrap_err();
    assert!(
        matches!(error, SubscribeError::TooManyClientFilters { .. }),
        "{error}"
    );
}

#[test]
fn distinct_filters_of_a_client_are_limited() {
    let mut world = World::with(HubOptions {
        client_filters_max: 2,
        ..HubOptions::default()
    });
    let with = |filter: &str| SubscriptionOptions {
        filter: Some(Arc::new(Nothing(filter.to_owned()))),
        ..text()
    };
    let client = world.hub.connect();
    for (channel, filter) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y")] {
        assert_eq!(subscribe(&mut world, client, channel, with(filter)), Ok(()));
    }
    let error = subscribe(&mut world, client, "e", with("z")).unwrap_err();
    let expected = SubscribeError::TooManyClientFilters {
        filters: 2,
        client_filters_max: 2,
    };
    assert_eq!(error, expected);
    assert_eq!(error.to_string().matches('2').count(), 2, "{error}");
    assert!(!world.hub.has_channel("e"));
    assert_eq!(subscribe(&mut world, client, "e", text()), Ok(()));
    let other = world.hub.connect();
    assert_eq!(subscribe(&mut world, other, "e", with("z")), Ok(()));
    world.hub.unsubscribe(client, &name("a"));
    world.hub.unsubscribe(client, &name("c"));
    assert_eq!(subscribe(&mut world, client, "a", with("z")), Ok(()));
}

#[test]
fn r08_the_flood_of_a_million_subscriptions_leaves_nothing_behind() {
    let mut world = World::new();
    let channels = if cfg!(debug_assertions) {
        20_000
    } else {
        1_000_000
    };
    let long = "x".repeat(NAME_BYTES_MAX - 10);
    for index in 0..channels {
        let client = world.hub.connect();
        let channel = match index % 100 {
            0 => format!("{long}{index}"),
            _ => index.to_string(),
        };
        assert_eq!(subscribe(&mut world, client, &channel, text()), Ok(()));
        world.all.push(client);
    }
    assert_eq!(world.hub.channels().count(), channels);
    for client in std::mem::take(&mut world.all) {
        assert_eq!(world.hub.disconnect(client).len(), 1);
    }
    assert_eq!(world.hub.channels().count(), 0);
    assert_eq!((world.hub.clients(), world.hub.subscriptions()), (0, 0));
    assert_eq!(world.hub.memory_use(), MemoryUse::default());
}

#[test]
fn the_interval_of_batches_is_limited() {
    let mut world = World::new();
    let client = world.hub.connect();
    let every = |batch_interval| SubscriptionOptions {
        batch_interval,
        ..text()
    };
    let interval_max = SubscriptionOptions::BATCH_INTERVAL_MAX;
    assert_eq!(
        subscribe(&mut world, client, "a", every(interval_max)),
        Ok(())
    );
    let interval = interval_max + Duration::from_nanos(1);
    let error = subscribe(&mut world, client, "b", every(interval)).unwrap_err();
    let expected = SubscribeError::BatchIntervalTooLong {
        interval,
        interval_max,
    };
    assert_eq!(error, expected);
    assert!(error.to_string().contains("60.000000001s"), "{error}");
}

#[test]
fn unknown_keys_are_refused() {
    let mut world = World::new();
    let client = world.hub.connect();
    let encoding = EncodingId(2);
    let unknown = subscribe(&mut world, client, "a", SubscriptionOptions::new(encoding));
    assert_eq!(unknown, Err(SubscribeError::UnknownEncoding { encoding }));
    assert_eq!(subscribe(&mut world, client, "a", text()), Ok(()));
    let again = subscribe(&mut world, client, "a", text());
    assert_eq!(again, Err(SubscribeError::AlreadySubscribed));
    world.hub.disconnect(client);
    world.hub.connect();
    let gone = subscribe(&mut world, client, "a", text());
    assert_eq!(gone, Err(SubscribeError::UnknownClient));
}

#[test]
fn a_block_is_limited_in_bytes() {
    for filter in [None, Some("1")] {
        for (batch_bytes_max, expected) in [(4, vec!["11;11;", "1;"]), (3, vec!["11;", "11;1;"])] {
            let mut world = World::new();
            let filter = filter.map(|filter| Arc::new(Contains(filter)) as Arc<dyn Filter>);
            let options = SubscriptionOptions {
                batch_bytes_max,
                filter,
                ..text()
            };
            let client = world.listen("a", options);
            for payload in ["11", "11", "1"] {
                world.publish("a", payload);
            }
            let expected: Vec<Seen> = expected.into_iter().map(block).collect();
            assert_eq!(world.deliver(client), expected);
        }
    }
}

#[test]
fn a_batch_with_enough_bytes_does_not_wait_for_its_tick() {
    let mut world = World::new();
    let options = SubscriptionOptions {
        batch_interval: Duration::from_secs(1),
        batch_bytes_max: 3,
        ..text()
    };
    let client = world.listen("a", options);
    world.ready();
    world.take(client);
    world.publish("a", "1");
    world.publish("a", "2");
    assert_eq!(world.ready(), []);
    world.publish("a", "3");
    assert_eq!(world.deliver(client), [block("1;2;3;")]);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.ready(), []);
}

#[test]
fn a_batch_that_fills_half_of_the_ring_does_not_wait_for_its_tick() {
    let mut world = World::with_ring(6);
    let options = SubscriptionOptions {
        batch_interval: Duration::from_secs(1),
        ..text()
    };
    let client = world.listen("a", options);
    world.ready();
    world.take(client);
    world.publish("a", "1");
    world.publish("a", "2");
    assert_eq!(world.ready(), []);
    world.publish("a", "3");
    assert_eq!(world.deliver(client), [block("1;2;3;")]);
}

#[test]
fn a_publication_that_cannot_be_encoded_ends_the_subscription() {
    let mut world = World::new();
    let client = world.listen("a", text());
    world.publish("a", "1");
    world.publish("a", "!");
    assert_eq!(world.deliver(client), [Seen::Unencodable]);
    world.publish("a", "2");
    world.ready();
    assert_eq!(world.take(client), []);
    assert_eq!(world.hub.totals().unencodable, 1);
    assert_eq!(world.hub.memory_use(), MemoryUse::default());
}

#[test]
fn a_hub_can_be_sent_to_another_thread() {
    fn assert_send<T: Send>() {}
    assert_send::<Hub>();
}
