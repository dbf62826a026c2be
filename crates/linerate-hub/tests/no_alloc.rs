//! Allocations on the path from a publication to its subscribers, and the release of that memory.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_hub::{
    Batch, ChannelName, ChannelOptions, ClientId, Encode, EncodingId, Hub, HubOptions, Place,
    Publication, Start, SubscriptionOptions, Transmit, Unencodable,
};

#[derive(Debug)]
struct Concatenated;

impl Encode for Concatenated {
    type Block = Bytes;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for publication in batch.publications {
            out.extend_from_slice(publication.payload());
        }
        Ok(())
    }

    fn seal(&self, bytes: Bytes, _batch: &Batch<'_>, _place: Option<Place<'_>>) -> Bytes {
        bytes
    }
}

fn hub() -> Hub {
    Hub::new(HubOptions {
        encodings: vec![Arc::new(Concatenated)],
        ..HubOptions::default()
    })
}

fn subscribe(hub: &mut Hub, now: Instant, channel: &ChannelName) -> ClientId {
    let client = hub.connect();
    let options = SubscriptionOptions::new(EncodingId(0));
    let channel_options = ChannelOptions::default();
    let subscription = hub.subscribe(now, client, channel.clone(), channel_options, options);
    hub.activate(now, subscription.unwrap(), Start::Live);
    client
}

/// Delivers all output; returns the number of blocks.
fn transmit(hub: &mut Hub, now: Instant) -> usize {
    let mut count = 0;
    while let Some(client) = hub.poll_ready() {
        while let Some(transmit) = hub.poll_transmit(now, client) {
            assert!(matches!(transmit, Transmit::Block { .. }));
            count += 1;
        }
    }
    count
}

/// Publishes `publication` in all channels and delivers it; returns the number of allocations and
/// of blocks.
fn allocations(hub: &mut Hub, channels: &[ChannelName], publication: &Publication) -> (u64, usize) {
    let now = Instant::now();
    let mut count = 0;
    let info = allocation_counter::measure(|| {
        for channel in channels {
            hub.publish(now, channel, publication.clone());
        }
        count = transmit(hub, now);
    });
    (info.count_total, count)
}

#[test]
fn a_block_costs_one_allocation_for_ten_thousand_subscribers_or_two_if_it_is_large() {
    let channel = ChannelName::new("a").unwrap();
    let now = Instant::now();
    let mut hub = hub();
    for _ in 0..10_000 {
        subscribe(&mut hub, now, &channel);
    }
    let channels = [channel];
    let publication = Publication::new(vec![b'x'; 300].into());
    transmit(&mut hub, now);
    allocations(&mut hub, &channels, &publication);
    assert_eq!(allocations(&mut hub, &channels, &publication), (1, 10_000));
    // One allocation for the bytes, and one for the counter of their owners.
    let large = Publication::new(vec![b'x'; 1_025].into());
    allocations(&mut hub, &channels, &large);
    assert_eq!(allocations(&mut hub, &channels, &large), (2, 10_000));
}

#[test]
fn a_publication_for_one_subscriber_is_one_allocation() {
    let now = Instant::now();
    let mut hub = hub();
    let channels: Vec<_> = (0..1_000)
        .map(|index| ChannelName::new(&index.to_string()).unwrap())
        .collect();
    for channel in &channels {
        subscribe(&mut hub, now, channel);
    }
    let publication = Publication::new(vec![b'x'; 300].into());
    transmit(&mut hub, now);
    allocations(&mut hub, &channels, &publication);
    let expected = (channels.len() as u64, channels.len());
    assert_eq!(allocations(&mut hub, &channels, &publication), expected);
}

#[test]
fn r12_what_a_flood_of_channels_has_taken_is_given_back() {
    let now = Instant::now();
    let mut hub = hub();
    let info = allocation_counter::measure(|| {
        let mut clients = Vec::new();
        for index in 0..20_000 {
            let channel = ChannelName::new(&format!("channel:{index}")).unwrap();
            clients.push(subscribe(&mut hub, now, &channel));
            hub.publish(now, &channel, Publication::new(vec![b'x'; 1_000].into()));
        }
        transmit(&mut hub, now);
        for client in clients {
            hub.disconnect(client);
        }
        hub.poll_ready();
    });
    assert!(info.bytes_max > 10_000_000, "{info:?}");
    assert!(info.bytes_current < 100_000, "{info:?}");
}

#[test]
fn r12_what_a_burst_has_taken_is_given_back() {
    let now = Instant::now();
    let mut hub = hub();
    let channel = ChannelName::new("a").unwrap();
    subscribe(&mut hub, now, &channel);
    transmit(&mut hub, now);
    let small = |hub: &mut Hub| {
        hub.publish(now, &channel, Publication::new("x".into()));
        transmit(hub, now);
    };
    let info = allocation_counter::measure(|| {
        for _ in 0..2_000 {
            hub.publish(now, &channel, Publication::new(vec![b'x'; 1_000].into()));
        }
        transmit(&mut hub, now);
        for _ in 0..3 {
            small(&mut hub);
        }
    });
    assert!(info.bytes_max > 2_000_000, "{info:?}");
    assert!(info.bytes_current < 400_000, "{info:?}");
}
