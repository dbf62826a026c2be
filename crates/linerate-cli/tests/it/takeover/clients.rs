//! Clients of a server with Redis or NATS move to the process that takes over, and miss nothing.

use std::{
    net::SocketAddr,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use linerate::{Client, Deflate, WebSocket};
use linerate_testkit::server::RedisServer;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::{JoinHandle, spawn_blocking},
    time::{sleep, timeout},
};

use super::{Deploys, ended};
use crate::{
    brokers::start_nats,
    support::{PATIENCE, Server},
};

/// How a client speaks to the server.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Centrifuge,
    Native,
    Raw,
}

/// A client that checks that each number follows the one before it.
pub(super) struct Follower {
    ws: WebSocket,
    kind: Kind,
    /// `None` until the first number.
    last: Option<u64>,
}

impl Follower {
    pub(super) async fn open(address: SocketAddr, kind: Kind, is_compressed: bool) -> Self {
        let mut options = linerate::Options::default();
        options.deflate = is_compressed.then(Deflate::default);
        let client = Client::new().with_options(options);
        let (client, path) = match kind {
            Kind::Raw => (client, "/raw?channel=demo:news"),
            Kind::Native => {
                let client = client.with_subprotocol("linerate.v1");
                (client, "/connection/websocket")
            }
            Kind::Centrifuge => (client, "/connection/websocket"),
        };
        let mut ws = client
            .connect(&format!("ws://{address}{path}"))
            .await
            .unwrap();
        if !matches!(kind, Kind::Raw) {
            ws.send(r#"{"id":1,"connect":{}}"#).await.unwrap();
            ws.recv().await.unwrap().expect("a reply");
            ws.send(r#"{"id":2,"subscribe":{"channel":"demo:news"}}"#)
                .await
                .unwrap();
            ws.recv().await.unwrap().expect("a reply");
        }
        let last = None;
        Self { ws, kind, last }
    }

    /// Returns how many clients are in the channel.
    async fn count_present(&mut self) -> u64 {
        let command = r#"{"id":3,"presence_stats":{"channel":"demo:news"}}"#;
        self.ws.send(command).await.unwrap();
        loop {
            let message = timeout(PATIENCE, self.ws.recv()).await.expect("in time");
            let message = message.unwrap().expect("the connection continues");
            let lines = message.as_bytes().split(|byte| *byte == b'\n');
            let mut answers = lines.filter_map(|line| {
                let line: Value = serde_json::from_slice(line).unwrap();
                line["presence_stats"]["num_clients"].as_u64()
            });
            if let Some(count) = answers.next_back() {
                return count;
            }
        }
    }

    /// Reads until this number. Returns false if the connection ends before.
    async fn follow(mut self, until: Arc<AtomicU64>) -> bool {
        while self
            .last
            .is_none_or(|last| last < until.load(Ordering::Relaxed))
        {
            let message = timeout(PATIENCE, self.ws.recv()).await.expect("in time");
            let Ok(Some(message)) = message else {
                return false;
            };
            if message.as_bytes() == b"{}" {
                if self.ws.send("{}").await.is_err() {
                    return false;
                }
                continue;
            }
            for number in numbers(self.kind, message.as_bytes()) {
                if let Some(last) = self.last {
                    assert_eq!(number, last + 1, "{:?}", self.kind);
                }
                self.last = Some(number);
            }
        }
        true
    }
}

/// Clients of each kind, and what is published to them.
pub(super) struct Crowd {
    followers: Vec<JoinHandle<bool>>,
    is_over: Arc<AtomicBool>,
    publisher: JoinHandle<()>,
}

/// The port of a server at which numbers are published, without knowledge of linerate.
#[derive(Clone, Copy)]
pub(super) enum Source {
    Nats(u16),
    Redis(u16),
}

impl Crowd {
    /// The number of clients.
    pub(super) const CLIENTS: usize = 18;

    pub(super) async fn gather(address: SocketAddr, source: Source) -> Self {
        let until = Arc::new(AtomicU64::new(u64::MAX));
        let mut followers = Vec::new();
        for number in 0..Self::CLIENTS {
            let kind = [Kind::Raw, Kind::Native, Kind::Centrifuge][number % 3];
            let follower = Follower::open(address, kind, number % 2 == 0).await;
            followers.push(tokio::spawn(follower.follow(until.clone())));
        }
        let is_over = Arc::new(AtomicBool::new(false));
        Self {
            followers,
            publisher: tokio::spawn(source.publish(is_over.clone(), until)),
            is_over,
        }
    }

    /// Stops publishing. Returns how many clients have stayed connected; they have received
    /// everything once, and in order.
    pub(super) async fn disperse(self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        self.publisher.await.unwrap();
        let mut connected = 0;
        for follower in self.followers {
            let is_connected = follower.await.expect("nothing is missing or repeated");
            connected += usize::from(is_connected);
        }
        connected
    }
}

/// Returns the numbers in a message. Each publication is a number of seven digits in quotes.
fn numbers(kind: Kind, message: &[u8]) -> Vec<u64> {
    let text = String::from_utf8_lossy(message);
    if let Kind::Centrifuge = kind {
        let data = text.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            let data = line["push"]["pub"]["data"].as_str()?;
            Some(data.parse().unwrap())
        });
        return data.collect();
    }
    let parts: Vec<&str> = text.split('"').collect();
    let parts = parts.iter().filter(|part| part.len() == 7);
    parts.filter_map(|part| part.parse().ok()).collect()
}

impl Source {
    /// Returns what introduces a publisher, if anything.
    const fn greeting(self) -> &'static str {
        match self {
            Self::Nats(_) => "CONNECT {\"verbose\":false}\r\n",
            Self::Redis(_) => "",
        }
    }

    /// Returns the commands that publish numbers. They are answered.
    fn commands(self, numbers: RangeInclusive<u64>) -> String {
        match self {
            Self::Nats(_) => {
                let publish = |number| format!("PUB demo:news 9\r\n\"{number}\"\r\n");
                numbers.map(publish).collect::<String>() + "PING\r\n"
            }
            Self::Redis(_) => {
                let publish = |number| format!("PUBLISH demo:news '\"{number}\"'\r\n");
                numbers.map(publish).collect()
            }
        }
    }

    /// Publishes numbers, about a thousand a second, until it is told to stop. Stores the last one,
    /// and publishes some more, so that everybody notices.
    async fn publish(self, is_over: Arc<AtomicBool>, last: Arc<AtomicU64>) {
        let (Self::Nats(port) | Self::Redis(port)) = self;
        let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        server.write_all(self.greeting().as_bytes()).await.unwrap();
        let mut number = 1_000_000;
        let mut replies = [0; 4_096];
        let mut is_last = false;
        while !is_last {
            is_last = is_over.load(Ordering::Relaxed);
            if is_last {
                last.store(number, Ordering::Relaxed);
            }
            let commands = self.commands(number + 1..=number + 5);
            number += 5;
            server.write_all(commands.as_bytes()).await.unwrap();
            assert!(server.read(&mut replies).await.unwrap() > 0);
            sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Replaces the running server. Returns the log of the old one.
pub(super) async fn take_turns(deploys: &Deploys, running: &mut Server, more: &[&str]) -> String {
    let flags = deploys.flags(&[more, &["--takeover"]].concat());
    let started = spawn_blocking(move || {
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Server::start_logging(&flags)
    });
    let new = timeout(PATIENCE, started).await.unwrap().unwrap();
    let old = std::mem::replace(running, new);
    let (status, log) = ended(old).await;
    assert!(status.success(), "{log}");
    log
}

async fn no_client_notices_ten_takeovers(broker: &str, source: Source) {
    let deploys = Deploys::new();
    let more = ["--broker", broker, "--set", "compression.enabled=true"];
    let mut running = deploys.start(&more);
    let crowd = Crowd::gather(running.address, source).await;
    for _ in 0..10 {
        sleep(Duration::from_millis(200)).await;
        let log = take_turns(&deploys, &mut running, &more).await;
        assert!(log.contains("takeover: clients are on the way"), "{log}");
        assert!(log.contains("clients=18"), "{log}");
    }
    assert_eq!(crowd.disperse().await, Crowd::CLIENTS);
    running.stop_and_read_log();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_notices_ten_takeovers_with_redis() {
    if let Some(redis) = RedisServer::start() {
        no_client_notices_ten_takeovers(&redis.url(), Source::Redis(redis.port())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_client_notices_ten_takeovers_with_nats() {
    if let Some(nats) = start_nats() {
        let broker = format!("nats://{}", nats.address());
        no_client_notices_ten_takeovers(&broker, Source::Nats(nats.port())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn during_takeovers_everybody_stays_present() {
    let Some(redis) = RedisServer::start() else {
        return;
    };
    let broker = redis.url();
    let deploys = Deploys::new();
    let more = ["--broker", &broker];
    let mut running = deploys.start(&more);
    let mut present = Vec::new();
    for _ in 0..40 {
        present.push(Follower::open(running.address, Kind::Native, false).await);
    }
    let mut watcher = Follower::open(running.address, Kind::Centrifuge, false).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = tokio::spawn({
        let is_over = is_over.clone();
        async move {
            let mut answers = 0;
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(watcher.count_present().await, 41, "after {answers} answers");
                answers += 1;
                sleep(Duration::from_millis(2)).await;
            }
            answers
        }
    });
    for _ in 0..5 {
        sleep(Duration::from_millis(100)).await;
        take_turns(&deploys, &mut running, &more).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let answers = timeout(PATIENCE, watching).await.unwrap().unwrap();
    assert!(answers > 100, "{answers} answers");
    running.stop_and_read_log();
}
