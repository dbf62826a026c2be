//! Measures what deltas save and cost: bytes and time for each publication, without sockets.
//!
//! `cargo run --release -p linerate-hub --example deltas [SUBSCRIBERS [PUBLICATIONS]]` publishes
//! JSON documents, each of which differs a little from the one before, to subscribers that receive
//! payloads in full, and to others that receive deltas. A publication is encoded once for all
//! subscribers, as in Centrifuge's JSON protocol. What the last one receives is checked.
#![allow(
    clippy::unwrap_used,
    reason = "an example may panic when something goes wrong"
)]

use std::{
    env,
    fmt::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate_hub::{
    Batch, ChannelName, ChannelOptions, Encode, EncodingId, Hub, HubOptions, Payloads, Place,
    Publication, Start, SubscriptionOptions, Transmit, Unencodable, fossil,
};

/// How often each case is measured.
const ROUNDS: usize = 5;

type Document = fn(usize) -> String;

/// Documents of about 1 KB.
const DOCUMENTS: [(&str, Document); 3] = [
    ("order book", order_book),
    ("scoreboard", scoreboard),
    ("gauges", gauges),
];

/// Encodes one publication in a push, as Centrifuge does.
#[derive(Debug)]
struct Push;

impl Encode for Push {
    type Block = Bytes;

    fn encode(&self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Result<(), Unencodable> {
        for (publication, delta) in batch.payloads.of(batch.publications) {
            out.extend_from_slice(b"{\"push\":{\"channel\":\"a\",\"pub\":{\"data\":");
            match (batch.payloads, &delta) {
                (Payloads::Full, _) => out.extend_from_slice(publication.payload()),
                (_, delta) => {
                    let data = delta.as_ref().unwrap_or(publication.payload());
                    let data = std::str::from_utf8(data).map_err(|_| Unencodable)?;
                    serde_json::to_writer(&mut *out, data).map_err(|_| Unencodable)?;
                }
            }
            out.extend_from_slice(if delta.is_some() {
                b",\"delta\":true"
            } else {
                b""
            });
            out.extend_from_slice(b",\"offset\":1234}}}");
        }
        Ok(())
    }

    fn seal(&self, bytes: Bytes, _batch: &Batch<'_>, _place: Option<Place<'_>>) -> Bytes {
        bytes
    }
}

fn main() {
    let mut arguments = env::args().skip(1).map(|text| text.parse().unwrap());
    let subscribers = arguments.next().unwrap_or(100);
    let publications = arguments.next().unwrap_or(2_000);
    println!("{subscribers} subscribers, {publications} publications, best of {ROUNDS} rounds");
    println!(
        "document     payload  full, bytes  µs   deltas, bytes  µs   of the bytes, of the time"
    );
    for (name, document) in DOCUMENTS {
        let documents: Vec<String> = (0..publications).map(document).collect();
        let payload = documents.iter().map(String::len).sum::<usize>() / publications;
        let [full, deltas] = [false, true].map(|with_deltas| {
            let rounds = (0..ROUNDS).map(|_| measure(&documents, subscribers, with_deltas));
            let (bytes, time) = rounds.min_by_key(|(_, time)| *time).unwrap();
            let each = publications as f64;
            (bytes as f64 / each, time.as_secs_f64() * 1e6 / each)
        });
        println!(
            "{name:<12} {payload:>7}  {:>11.0}  {:>3.1}  {:>13.0}  {:>3.1}  {:>12.2}, {:.2}",
            full.0,
            full.1,
            deltas.0,
            deltas.1,
            deltas.0 / full.0,
            deltas.1 / full.1
        );
    }
}

/// Returns the bytes of all blocks for one subscriber, and the time that the hub took for all
/// subscribers.
fn measure(documents: &[String], subscribers: usize, with_deltas: bool) -> (usize, Duration) {
    let mut hub = Hub::new(HubOptions {
        encodings: vec![Arc::new(Push) as Arc<dyn Encode<Block = Bytes>>],
        ..HubOptions::default()
    });
    let (now, channel) = (Instant::now(), ChannelName::new("a").unwrap());
    for _ in 0..subscribers {
        let client = hub.connect();
        let options = SubscriptionOptions {
            with_deltas,
            ..SubscriptionOptions::new(EncodingId(0))
        };
        let ring = ChannelOptions::default();
        let subscription = hub.subscribe(now, client, channel.clone(), ring, options);
        hub.activate(now, subscription.unwrap(), Start::Live);
    }
    while let Some(client) = hub.poll_ready() {
        assert_eq!(hub.poll_transmit(now, client), None);
    }
    let (mut bytes, mut time, mut received) = (0, Duration::ZERO, Vec::new());
    for document in documents {
        let publication = Publication::new(document.clone().into());
        let start = Instant::now();
        hub.publish(now, &channel, publication);
        let mut last = Bytes::new();
        while let Some(client) = hub.poll_ready() {
            while let Some(transmit) = hub.poll_transmit(now, client) {
                let Transmit::Block { block, .. } = transmit else {
                    panic!("unexpected {transmit:?}");
                };
                last = block;
            }
        }
        time += start.elapsed();
        bytes += last.len();
        if with_deltas {
            received = payload(&last, &received);
            assert_eq!(received, document.as_bytes());
        }
    }
    (bytes, time)
}

/// Returns the payload in a push that follows the payload `previous`.
fn payload(push: &[u8], previous: &[u8]) -> Vec<u8> {
    let push: serde_json::Value = serde_json::from_slice(push).unwrap();
    let publication = &push["push"]["pub"];
    let data = publication["data"].as_str().unwrap().as_bytes();
    match publication["delta"].as_bool() {
        Some(true) => fossil::apply(previous, data, 65_536).unwrap(),
        _ => data.into(),
    }
}

/// An order book: two of 40 levels change, and the time.
fn order_book(number: usize) -> String {
    let mut text = format!(
        r#"{{"symbol":"BTC-USD","sequence":{},"bids":["#,
        8_812_000 + number
    );
    for level in 0..40 {
        let change = usize::from(level * 7 % 40 <= number % 40) + number / 40;
        let change = (change * 1_103 + level * 331) % 9_000;
        let separator = if level % 20 == 0 { "" } else { "," };
        write!(
            text,
            "{separator}[{}.50,{}.{change:04}]",
            60_000 + level,
            level % 3
        )
        .unwrap();
        if level == 19 {
            text.push_str(r#"],"asks":["#);
        }
    }
    write!(text, r#"],"time":{}}}"#, 1_764_000_000_000 + 173 * number).unwrap();
    text
}

/// A scoreboard with its texts: the clock changes, and sometimes a score.
fn scoreboard(number: usize) -> String {
    let players: Vec<String> = (0..10)
        .map(|player| {
            let points = player * 2 + (number + player * 13) / 150;
            let name = ["Åsa Lindström", "Tom O’Neill", "Renée Dubois", "Wei Zhang"][player % 4];
            format!(
                r#"{{"id":{player},"name":"{name}","points":{points},"fouls":{}}}"#,
                player % 3
            )
        })
        .collect();
    format!(
        r#"{{"match":"2026-11-27-BER-PAR","venue":"Uber Arena, Berlin","round":"Regular season, round 12","clock":"{:02}:{:02}","home":{{"team":"Alba","score":{}}},"away":{{"team":"Paris","score":{}}},"players":[{}]}}"#,
        number / 60 % 40,
        number % 60,
        number / 50,
        number / 55,
        players.join(",")
    )
}

/// The gauges of a dashboard, of which a tenth changes.
fn gauges(number: usize) -> String {
    let gauges: Vec<String> = (0..40)
        .map(|gauge| {
            let changes = (number + 40 - gauge) / 10 + gauge;
            format!(
                r#""host{gauge:02}.cpu":{:.3}"#,
                (changes * 7_919 % 10_000) as f64 / 100.0
            )
        })
        .collect();
    format!(r#"{{"at":{number},{}}}"#, gauges.join(","))
}
