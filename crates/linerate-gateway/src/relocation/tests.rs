//! Clients move between gateways in one process, which share a broker.

mod phoenix;
mod sessions;
mod socketio;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use linerate::{Client, WebSocket};
use linerate_broker::{
    BoxFuture, Broker, BrokerOptions, Event, Ingest, Publish, StreamOptions, connect,
};
use linerate_hub::{ChannelName, Publication};
use linerate_proto::portable::Version;
use linerate_testkit::PATIENCE;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{Arrival, Departure, parcel::write_names};
use crate::{
    Gateway, Running,
    config::{Config, Loader},
};

/// Passes the events of a broker to several gateways.
#[derive(Default)]
struct Tee(Mutex<Vec<Arc<dyn Ingest>>>);

impl Ingest for Tee {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        let all = self.0.lock().clone();
        Box::pin(async move {
            for one in all {
                one.ingest(events.clone()).await;
            }
        })
    }

    fn keep(&self, _publication: &Publication) {}
}

/// Gateways that share a broker.
struct Cluster {
    tee: Arc<Tee>,
    broker: Arc<dyn Broker>,
}

impl Cluster {
    fn new() -> Self {
        let tee = Arc::new(Tee::default());
        let broker = connect("memory:", BrokerOptions::default(), tee.clone());
        Self {
            broker: broker.unwrap(),
            tee,
        }
    }

    /// Starts a gateway with `workers` workers.
    async fn start(&self, workers: usize) -> (Running, SocketAddr) {
        self.start_with(workers, "").await
    }

    /// Starts a gateway with additional settings.
    async fn start_with(&self, workers: usize, toml: &str) -> (Running, SocketAddr) {
        let toml = format!("[server]\nlisten = \"127.0.0.1:0\"\nworkers = {workers}\n{toml}");
        let config = Loader::new().with_text("test.toml", &toml).load().unwrap();
        let gateway = Gateway::bind_with(config, |ingest| {
            self.tee.0.lock().push(ingest);
            Ok(self.broker.clone())
        });
        let gateway = gateway.unwrap();
        let address = gateway.address();
        let running = gateway.start().unwrap();
        running.relocation().fleet.complete(workers).await;
        (running, address)
    }

    async fn publish(&self, channel: &str, payload: &str) {
        let options = Config::default().channel.stream();
        self.publish_in(channel, options, payload).await;
    }

    /// Publishes in a channel that keeps this stream.
    async fn publish_in(&self, channel: &str, options: StreamOptions, payload: &str) {
        let channel = ChannelName::new(channel).unwrap();
        let publish = Publish {
            payload: Bytes::from(payload.to_owned()),
            info: None,
            tags: Vec::new(),
            idempotency_key: None,
            options,
        };
        self.broker.publish(&channel, publish).await.unwrap();
    }
}

/// Begins to move all clients from one gateway to another, as two processes would do it.
async fn begin(old: &Running, new: &Running) -> (Departure, Arrival) {
    let departure = Departure(old.relocation());
    let mut arrival = Arrival::begin(new.relocation()).await;
    departure.begin(arrival.mark().clone()).await;
    subscribe(&departure, &mut arrival).await;
    arrival.send_mark().await.unwrap();
    departure.settle().await.unwrap();
    subscribe(&departure, &mut arrival).await;
    (departure, arrival)
}

async fn subscribe(departure: &Departure, arrival: &mut Arrival) {
    let (_, channels) = departure.channels().await.unwrap();
    for names in write_names(&channels) {
        arrival.subscribe(&names).await.unwrap();
    }
}

/// Moves all clients from one gateway to another.
async fn relocate(old: &Running, new: &Running) -> usize {
    let (departure, mut arrival) = begin(old, new).await;
    let departed = departure.leave(Version::NEWEST).await.unwrap();
    for parcel in departed.parcels {
        let sockets = parcel.sockets.iter();
        let sockets = sockets.map(|socket| socket.try_clone().unwrap());
        arrival.receive(parcel.bytes, sockets.collect()).unwrap();
    }
    arrival.complete().await.unwrap();
    departure.end().await;
    let clients = arrival.finish().await;
    departure.leave_presence();
    clients
}

/// Moves all clients out of a gateway, and back, because the other process has failed.
async fn fail_to_relocate(old: &Running, new: &Running) -> usize {
    let (departure, _arrival) = begin(old, new).await;
    let departed = departure.leave(Version::NEWEST).await.unwrap();
    let count = departed.clients;
    drop(departed);
    departure.take_back().await;
    count
}

/// Returns the next message.
async fn next(ws: &mut WebSocket) -> Bytes {
    let received = timeout(PATIENCE, ws.recv())
        .await
        .expect("in time")
        .unwrap();
    let message = received.unwrap_or_else(|| panic!("closed: {:?}", ws.closed()));
    Bytes::copy_from_slice(message.as_bytes())
}

/// A client that checks the numbers that it receives.
struct Counter {
    ws: WebSocket,
    kind: Kind,
    /// The last number.
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Raw,
    Native,
    Centrifuge,
}

impl Counter {
    async fn open(address: SocketAddr, kind: Kind, channel: &str) -> Self {
        let client = match kind {
            Kind::Native => Client::new().with_subprotocol("linerate.v1"),
            _ => Client::new(),
        };
        let path = match kind {
            Kind::Raw => format!("/raw?channel={channel}"),
            _ => "/connection/websocket".to_owned(),
        };
        let url = format!("ws://{address}{path}");
        let mut ws = client.connect(&url).await.unwrap();
        if kind != Kind::Raw {
            ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
            next(&mut ws).await;
            let subscribe = format!(r#"{{"id":2,"subscribe":{{"channel":"{channel}"}}}}"#);
            ws.send(subscribe).await.unwrap();
            let reply = next(&mut ws).await;
            assert!(reply.starts_with(br#"{"id":2,"subscribe""#), "{reply:?}");
        }
        Self { ws, kind, last: 0 }
    }

    /// Reads until this number. Each number follows the one before it.
    async fn read_until(&mut self, number: u64) {
        while self.last < number {
            let message = next(&mut self.ws).await;
            let text = String::from_utf8_lossy(&message).into_owned();
            let numbers: Vec<u64> = match self.kind {
                Kind::Raw => vec![text.parse().unwrap()],
                Kind::Centrifuge => {
                    let lines = text.lines().filter(|line| *line != "{}");
                    let data = |line: &str| {
                        let line: Value = serde_json::from_str(line).unwrap();
                        line["push"]["pub"]["data"].as_u64().expect("a number")
                    };
                    lines.map(data).collect()
                }
                // Each publication is `=` with five digits, after its length. The number of
                // publications in a block may be the code of `=` too.
                Kind::Native => text
                    .split("\x06=")
                    .skip(1)
                    .map(|part| part[..5].parse().unwrap())
                    .collect(),
            };
            for found in numbers {
                assert_eq!(found, self.last + 1, "{:?}", self.kind);
                self.last = found;
            }
        }
    }
}

fn payload(kind: Kind, number: u64) -> String {
    match kind {
        Kind::Native => format!("={number:05}"),
        _ => number.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_each_protocol_move_and_miss_nothing() {
    let cluster = Arc::new(Cluster::new());
    let (mut old, address) = cluster.start(2).await;
    let mut readers = Vec::new();
    for kind in [Kind::Raw, Kind::Native, Kind::Centrifuge] {
        for _ in 0..10 {
            let channel = format!("{kind:?}");
            readers.push(Counter::open(address, kind, &channel).await);
        }
    }
    let publisher = tokio::spawn({
        let cluster = cluster.clone();
        async move {
            let started = Instant::now();
            let mut number = 0;
            while started.elapsed() < Duration::from_secs(2) {
                number += 1;
                for kind in [Kind::Raw, Kind::Native, Kind::Centrifuge] {
                    let channel = format!("{kind:?}");
                    cluster.publish(&channel, &payload(kind, number)).await;
                }
                tokio::task::yield_now().await;
            }
            number
        }
    });
    for _ in 0..5 {
        sleep(Duration::from_millis(100)).await;
        let (new, _) = cluster.start(2).await;
        assert_eq!(fail_to_relocate(&old, &new).await, 30);
        sleep(Duration::from_millis(100)).await;
        let (new, _) = cluster.start(2).await;
        assert_eq!(relocate(&old, &new).await, 30);
        old = new;
    }
    let number = publisher.await.unwrap();
    for reader in &mut readers {
        reader.read_until(number).await;
    }
    assert_eq!(old.info().clients, 30);
}
