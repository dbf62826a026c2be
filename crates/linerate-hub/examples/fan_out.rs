//! Measures the time that the hub needs for each delivery, without sockets.
//!
//! Run it with `cargo run --release --example fan_out`.
#![allow(
    clippy::unwrap_used,
    reason = "an example may panic when something goes wrong"
)]

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use linerate_filter::Limits;
use linerate_hub::{
    Batch, ChannelName, ChannelOptions, Encode, EncodingId, Hub, HubOptions, Place, Publication,
    Start, SubscriptionOptions, Transmit, Unencodable,
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

#[derive(Clone, Copy)]
struct Shape {
    channels: usize,
    /// The number of subscribers of each channel.
    subscribers: usize,
    /// The number of different sources that subscribers filter for in turn; 0 means no filter.
    sources: usize,
    /// The number of publications in each channel before they are delivered.
    burst: usize,
    turns: usize,
}

const fn shape(
    channels: usize,
    subscribers: usize,
    sources: usize,
    burst: usize,
    turns: usize,
) -> Shape {
    Shape {
        channels,
        subscribers,
        sources,
        burst,
        turns,
    }
}

const SHAPES: [Shape; 7] = [
    shape(1, 1, 0, 1, 300_000),
    shape(1, 10_000, 0, 1, 100),
    shape(1, 10_000, 0, 100, 100),
    shape(100, 100, 0, 10, 100),
    shape(10_000, 1, 0, 1, 50),
    shape(1, 500, 10, 10, 5_000),
    shape(1, 500, 250, 10, 5_000),
];

fn main() {
    println!("channels  subscribers  sources  burst    ns/block    ns/publication");
    for shape in SHAPES {
        let names: Vec<ChannelName> = (0..shape.channels)
            .map(|index| ChannelName::new(&format!("channel:{index}")).unwrap())
            .collect();
        let mut hub = hub_with(&names, shape);
        turn(&mut hub, &names, shape, 0);
        let before = hub.totals();
        let start = Instant::now();
        for number in 0..shape.turns {
            turn(&mut hub, &names, shape, number);
        }
        let time = start.elapsed().as_nanos() as f64;
        let totals = hub.totals();
        let published = totals.published_messages - before.published_messages;
        let delivered = totals.delivered_messages - before.delivered_messages;
        let audience = (shape.subscribers / shape.sources.max(1)) as u64;
        assert_eq!(delivered, published * audience);
        let blocks = totals.delivered_blocks - before.delivered_blocks;
        println!(
            "{:8}  {:11}  {:7}  {:5}  {:10.1}  {:16.1}",
            shape.channels,
            shape.subscribers,
            shape.sources,
            shape.burst,
            time / blocks as f64,
            time / published as f64
        );
    }
}

fn hub_with(names: &[ChannelName], shape: Shape) -> Hub {
    let mut hub = Hub::new(HubOptions {
        encodings: vec![Arc::new(Concatenated)],
        ..HubOptions::default()
    });
    let now = Instant::now();
    for name in names {
        for index in 0..shape.subscribers {
            let client = hub.connect();
            let mut options = SubscriptionOptions::new(EncodingId(0));
            if shape.sources > 0 {
                let text = format!("source == '{}'", index % shape.sources);
                let filter = linerate_filter::Filter::new(&text, &Limits::default());
                options.filter = Some(Arc::new(Arc::new(filter.unwrap())));
            }
            let channel_options = ChannelOptions::default();
            let subscription = hub.subscribe(now, client, name.clone(), channel_options, options);
            hub.activate(now, subscription.unwrap(), Start::Live);
        }
    }
    while let Some(client) = hub.poll_ready() {
        assert_eq!(hub.poll_transmit(now, client), None);
    }
    hub
}

/// Publishes a burst and delivers it.
fn turn(hub: &mut Hub, names: &[ChannelName], shape: Shape, number: usize) {
    let now = Instant::now();
    for index in 0..shape.burst {
        let source = (number * shape.burst + index) % shape.sources.max(1);
        let payload = format!(r#"{{"source":"{source}","text":"{}"}}"#, "x".repeat(220));
        let publication = Publication::new(payload.into());
        for name in names {
            hub.publish(now, name, publication.clone());
        }
    }
    while let Some(client) = hub.poll_ready() {
        while let Some(transmit) = hub.poll_transmit(now, client) {
            assert!(matches!(transmit, Transmit::Block { .. }));
        }
    }
}
