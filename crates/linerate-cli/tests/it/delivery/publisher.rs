//! Publishers of numbered publications, through linerate or directly to the broker.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use rdkafka::producer::FutureProducer;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

use super::{database::insert, ledger::Published, node, servers::Kind};
use crate::kafka::write;

/// Time between two publications.
const INTERVAL: Duration = Duration::from_millis(10);

/// With padding, [`INTERVAL`] applies to every 16 KiB of it. This limits a channel to 1.6 MB/s,
/// which readers that are not slow can handle.
const INTERVAL_FOR: usize = 16 << 10;

/// Pause after an error.
const PAUSE: Duration = Duration::from_millis(100);

/// How to publish.
#[derive(Clone)]
pub(crate) enum Way {
    /// Through the server API of a node.
    Api(SocketAddr),
    /// Directly to the broker on a local port, without anything that linerate would add.
    Broker(Kind, u16),
    /// By records of a topic that the nodes publish.
    Kafka(FutureProducer),
    /// By rows in a table that the nodes publish.
    Database(Box<tokio_postgres::Config>),
}

/// Number of bytes in each publication in addition to its number.
pub(crate) type Padding = usize;

/// Publishes 1, 2, 3 and so on to a channel until it is ended.
pub(crate) struct Publisher {
    pub(crate) channel: String,
    published: Arc<Mutex<Published>>,
    is_over: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Publisher {
    pub(crate) fn start(channel: &str, way: Way, padding: Padding) -> Self {
        let published = Arc::new(Mutex::new(Published::default()));
        let (is_over, over) = watch::channel(false);
        let (name, counted) = (channel.to_owned(), Arc::clone(&published));
        let task = tokio::spawn(async move { run(way, &name, padding, &counted, over).await });
        Self {
            channel: channel.to_owned(),
            published,
            is_over,
            task,
        }
    }

    /// Returns the number of publications acknowledged so far.
    pub(crate) fn len(&self) -> u64 {
        self.published.lock().unwrap().len()
    }

    /// Stops after the publication in progress, and returns what was published.
    pub(crate) async fn end(self) -> Published {
        self.is_over.send_replace(true);
        self.task.await.unwrap();
        self.published.lock().unwrap().clone()
    }
}

/// Returns the number of a publication, ignoring its padding.
pub(crate) fn number(payload: &str) -> Option<u64> {
    let (number, _) = payload.strip_prefix("{\"n\":")?.split_once(',')?;
    number.parse().ok()
}

async fn run(
    way: Way,
    channel: &str,
    padding: Padding,
    published: &Mutex<Published>,
    over: watch::Receiver<bool>,
) {
    let (mut connection, mut client) = (None, None);
    let interval = INTERVAL * (padding / INTERVAL_FOR).max(1) as u32;
    for number in 1.. {
        if *over.borrow() {
            return;
        }
        let payload = format!(r#"{{"n":{number},"padding":"{}"}}"#, "x".repeat(padding));
        let is_published = match &way {
            Way::Api(address) => node::publish(*address, channel, &payload).await,
            Way::Database(config) => insert(&mut client, config, channel, &payload).await,
            Way::Kafka(producer) => write(producer, channel, &payload).await,
            Way::Broker(kind, port) => {
                let sent = send(&mut connection, *kind, *port, channel, &payload).await;
                if sent.is_none() {
                    connection = None;
                }
                sent.is_some()
            }
        };
        match is_published {
            true => published.lock().unwrap().acknowledge(number),
            false => published.lock().unwrap().doubt(number),
        }
        sleep(if is_published { interval } else { PAUSE }).await;
    }
}

/// Publishes on a persistent connection, and waits for the server's response. Returns `None` if the
/// connection was cut.
async fn send(
    connection: &mut Option<BufReader<TcpStream>>,
    kind: Kind,
    port: u16,
    channel: &str,
    payload: &str,
) -> Option<()> {
    if connection.is_none() {
        let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", port)).await.ok()?);
        if kind == Kind::Nats {
            // Skip the greeting.
            read_line(&mut stream).await?;
            stream
                .write_all(b"CONNECT {\"verbose\":false}\r\n")
                .await
                .ok()?;
        }
        *connection = Some(stream);
    }
    let stream = connection.as_mut()?;
    let (command, answer) = match kind {
        Kind::Nats => (
            format!("PUB {channel} {}\r\n{payload}\r\nPING\r\n", payload.len()),
            "PONG",
        ),
        Kind::Redis => (format!("PUBLISH {channel} '{payload}'\r\n"), ":"),
    };
    stream.write_all(command.as_bytes()).await.ok()?;
    loop {
        let line = read_line(stream).await?;
        if line.starts_with(answer) {
            return Some(());
        }
        if line.starts_with("PING") {
            stream.write_all(b"PONG\r\n").await.ok()?;
        } else if line.starts_with('-') {
            return None;
        }
    }
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let bytes = stream.read_line(&mut line).await.ok()?;
    (bytes > 0).then_some(line)
}
