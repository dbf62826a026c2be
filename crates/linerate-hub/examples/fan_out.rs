//! What the hub costs for each delivery, without sockets: `cargo run --release --example fan_out`.
#![allow(
    clippy::unwrap_used,
    reason = "an example ends when something goes wrong"
)]

use std::{sync::Arc, time::Instant};

use linerate_hub::{
    Batch, ChannelName, ChannelOptions, ClientId, Encode, EncodingId, Hub, HubOptions, Publication,
    Start, SubscriptionOptions, Transmit, Unencodable,
};

#[derive(Debug)]
struct Concatenated;

impl Encode for Concatenated {
    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for publication in batch.publications {
            out.extend_from_slice(publication.payload());
        }
        Ok(())
    }
}

/// Channels, subscribers of each, publications in each before they are given out, and turns.
const SHAPES: [(usize, usize, usize, usize); 5] = [
    (1, 10_000, 1, 300),
    (1, 10_000, 100, 300),
    (10_000, 1, 1, 100),
    (1, 1, 1, 1_000_000),
    (100, 100, 10, 100),
];

fn main() {
    println!("channels  subscribers  burst   ns a delivery  ns a publication");
    for (channels, subscribers, burst, turns) in SHAPES {
        let names: Vec<ChannelName> = (0..channels)
            .map(|index| ChannelName::new(&format!("channel:{index}")).unwrap())
            .collect();
        let mut hub = hub_with(&names, subscribers);
        turn(&mut hub, &names, burst);
        let start = Instant::now();
        let mut deliveries = 0;
        for _ in 0..turns {
            deliveries += turn(&mut hub, &names, burst);
        }
        let time = start.elapsed().as_nanos() as f64;
        assert_eq!(deliveries, channels * subscribers * burst * turns);
        let blocks = (channels * subscribers * turns) as f64;
        let publications = (channels * burst * turns) as f64;
        println!(
            "{channels:8}  {subscribers:11}  {burst:5}   {:13.1}  {:16.1}",
            time / blocks,
            time / publications
        );
    }
}

fn hub_with(names: &[ChannelName], subscribers: usize) -> Hub {
    let mut hub = Hub::new(HubOptions {
        encodings: vec![Arc::new(Concatenated)],
        ..HubOptions::default()
    });
    let now = Instant::now();
    for name in names {
        for _ in 0..subscribers {
            let client: ClientId = hub.connect();
            let options = SubscriptionOptions::new(EncodingId(0));
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

/// Publishes and gives out; returns how many publications were delivered.
fn turn(hub: &mut Hub, names: &[ChannelName], burst: usize) -> usize {
    let now = Instant::now();
    let publication = Publication::new(vec![b'x'; 250].into());
    for name in names {
        for _ in 0..burst {
            hub.publish(now, name, publication.clone());
        }
    }
    let mut delivered = 0;
    while let Some(client) = hub.poll_ready() {
        while let Some(transmit) = hub.poll_transmit(now, client) {
            if let Transmit::Block { messages, .. } = transmit {
                delivered += messages as usize;
            }
        }
    }
    delivered
}
