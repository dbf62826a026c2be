//! Measures durable channels on NATS: `cargo run --release --example nats_durable [channels]`.
//!
//! Starts a server, publishes at full speed in one channel, from one node and from two, and then
//! once in each of `channels` channels. Reports rates, and what the channels cost the server.

use std::{
    error::Error,
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, future::try_join_all, stream};
use linerate_broker::{
    BoxFuture, Broker, BrokerError, BrokerOptions, Event, HistoryRequest, Ingest, LinkState, Nats,
    Publish, StreamOptions,
};
use linerate_hub::ChannelName;
use linerate_testkit::server::{ServerProcess, free_port};

const OPTIONS: StreamOptions = StreamOptions {
    is_durable: true,
    size_max: 100,
    ttl: Duration::from_secs(3_600),
};

/// The size of a payload in bytes.
const PAYLOAD_BYTES: usize = 250;

/// How long each rate is measured.
const MEASURED: Duration = Duration::from_secs(3);

/// The number of channels in which is published at once.
const CHANNELS_AT_ONCE: usize = 64;

/// How often a history is read.
const READS: u32 = 200;

/// A node without subscribers.
#[derive(Debug)]
struct Node;

impl Ingest for Node {
    fn ingest(&self, _events: Vec<Event>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let channels = std::env::args().nth(1);
    let channels = channels.map_or(Ok(10_000), |text| text.parse())?;
    let port = free_port();
    let server = ServerProcess::start("nats-server", port, |directory| {
        let path = |name: &str| directory.join(name).display().to_string();
        let (port, store, process) = (port.to_string(), path("js"), path("pid"));
        let arguments = [
            "-a",
            "127.0.0.1",
            "-p",
            &port,
            "-js",
            "-sd",
            &store,
            "-P",
            &process,
        ];
        arguments.map(str::to_owned).to_vec()
    });
    let server = server.ok_or("nats-server is not installed")?;
    let url = format!("nats://{}", server.address());
    let process = fs::read_to_string(server.directory().join("pid"))?;
    let nodes = [connect(&url).await?, connect(&url).await?];
    for (count, depth) in [(1, 1), (1, 16), (1, 256), (2, 1), (2, 16), (2, 256)] {
        let channel = ChannelName::new(&format!("rate-{count}-{depth}"))?;
        let published = publish_in(&channel, &nodes[..count], depth).await?;
        let rate = published as f64 / MEASURED.as_secs_f64();
        println!("{count} nodes, {depth} at once each: {rate:.0} publications per second");
    }
    let before = (resident_bytes(&process)?, stored(server.directory())?);
    let started = Instant::now();
    let published = stream::iter(0..channels).map(|number| {
        let node = &nodes[0];
        async move {
            let channel = ChannelName::new(&format!("channel:{number}")).map_err(refused)?;
            node.publish(&channel, publication()).await
        }
    });
    let published = published.buffer_unordered(CHANNELS_AT_ONCE);
    published
        .try_for_each(|_| std::future::ready(Ok(())))
        .await?;
    let seconds = started.elapsed().as_secs_f64();
    // The server's own tasks have run by then.
    tokio::time::sleep(MEASURED).await;
    let after = (resident_bytes(&process)?, stored(server.directory())?);
    let per_channel = |after: u64, before: u64| after.saturating_sub(before) / channels;
    println!(
        "{channels} channels: {:.3} ms, {} B of the server's memory and {} B on disk each, \
         {} files together",
        seconds * 1_000.0 / channels as f64,
        per_channel(after.0, before.0),
        per_channel(after.1.0, before.1.0),
        after.1.1 - before.1.1,
    );
    for (name, stored, wanted) in [
        ("channel:0", 1, 1),
        ("rate-1-1", 100, 5),
        ("rate-1-1", 100, 100),
    ] {
        let channel = ChannelName::new(name)?;
        let milliseconds = read(&nodes[1], &channel, wanted).await?;
        println!("the newest {wanted} of {stored} publications are read in {milliseconds:.3} ms");
    }
    Ok(())
}

/// Reads the newest publications of a channel again and again. Returns the time for each time, in
/// milliseconds.
async fn read(node: &Nats, channel: &ChannelName, wanted: u64) -> Result<f64, Box<dyn Error>> {
    let newest = HistoryRequest {
        limit: Some(0),
        ..HistoryRequest::default()
    };
    let mut since = node.history(channel, OPTIONS, newest).await?.newest;
    since.offset -= wanted;
    let started = Instant::now();
    for _ in 0..READS {
        let request = HistoryRequest {
            since: Some(since.clone()),
            ..HistoryRequest::default()
        };
        let history = node.history(channel, OPTIONS, request).await?;
        if history.publications.len() as u64 != wanted {
            return Err("a history is not complete".into());
        }
    }
    Ok(started.elapsed().as_secs_f64() * 1_000.0 / f64::from(READS))
}

async fn connect(url: &str) -> Result<Nats, Box<dyn Error>> {
    let node = Nats::new(url, BrokerOptions::default(), Arc::new(Node))?;
    while !matches!(node.link(), LinkState::Up { .. }) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(node)
}

/// Publishes in a channel and returns the number of publications.
async fn publish_in(
    channel: &ChannelName,
    nodes: &[Nats],
    depth: usize,
) -> Result<u64, BrokerError> {
    let end = Instant::now() + MEASURED;
    let publishers = nodes.iter().flat_map(|node| (0..depth).map(move |_| node));
    let publishers = publishers.map(async |node| {
        while Instant::now() < end {
            node.publish(channel, publication()).await?;
        }
        Ok(())
    });
    try_join_all(publishers).await?;
    let newest = HistoryRequest {
        limit: Some(0),
        ..HistoryRequest::default()
    };
    let history = nodes[0].history(channel, OPTIONS, newest).await?;
    Ok(history.newest.offset)
}

fn publication() -> Publish {
    Publish {
        payload: Bytes::from(vec![b'x'; PAYLOAD_BYTES]),
        info: None,
        tags: Vec::new(),
        idempotency_key: None,
        options: OPTIONS,
    }
}

fn refused(error: impl ToString) -> BrokerError {
    let reason = error.to_string();
    BrokerError::Refused { reason }
}

/// Returns the resident memory of a process (Linux only).
fn resident_bytes(process: &str) -> Result<u64, Box<dyn Error>> {
    let status = fs::read_to_string(format!("/proc/{}/status", process.trim()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    Ok(kilobytes.ok_or("process has no memory")?.parse::<u64>()? << 10)
}

/// Returns the number of bytes and of files in a directory.
fn stored(directory: &Path) -> Result<(u64, u64), Box<dyn Error>> {
    let (mut bytes, mut files) = (0, 0);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let found = match entry.file_type()?.is_dir() {
            true => stored(&entry.path())?,
            false => (entry.metadata()?.len(), 1),
        };
        bytes += found.0;
        files += found.1;
    }
    Ok((bytes, files))
}
