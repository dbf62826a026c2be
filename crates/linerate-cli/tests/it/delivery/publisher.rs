//! Numbered publications, by those who know linerate and those who don't.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::watch,
    task::JoinHandle,
    time::sleep,
};

use super::{ledger::Published, node, servers::Kind};

/// How long is waited between two publications.
const INTERVAL: Duration = Duration::from_millis(10);

/// How long is waited after each so many bytes of padding: a channel has 1.6 MB a second at most, which readers that are not
/// slow can take.
const INTERVAL_FOR: usize = 16 << 10;

/// How long is waited when something went wrong.
const PAUSE: Duration = Duration::from_millis(100);

/// How one publishes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    /// Through the server API of a node.
    Api(SocketAddr),
    /// In the broker itself, on a local port, without anything that linerate would add.
    Broker(Kind, u16),
}

/// How many bytes each publication has beside its number.
pub(crate) type Padding = usize;

/// Publishes 1, 2, 3 and so on in a channel until it is ended.
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

    /// Returns how many publications were acknowledged so far.
    pub(crate) fn len(&self) -> u64 {
        self.published.lock().unwrap().len()
    }

    /// Ends publishing after the number that is under way, and returns what was published.
    pub(crate) async fn end(self) -> Published {
        self.is_over.send_replace(true);
        self.task.await.unwrap();
        self.published.lock().unwrap().clone()
    }
}

/// Returns the number of a publication, without a look at its padding.
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
    let mut connection = None;
    let interval = INTERVAL * (padding / INTERVAL_FOR).max(1) as u32;
    for number in 1.. {
        if *over.borrow() {
            return;
        }
        let payload = format!(r#"{{"n":{number},"padding":"{}"}}"#, "x".repeat(padding));
        let is_published = match way {
            Way::Api(address) => node::publish(address, channel, &payload).await,
            Way::Broker(kind, port) => {
                let sent = send(&mut connection, kind, port, channel, &payload).await;
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

/// Publishes on a connection that is kept, and waits until the server has answered. `None` is a cut connection.
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
            // The greeting.
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
