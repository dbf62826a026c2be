//! Measures how many messages per second one reader takes from Redis: `cargo run --release
//! --example redis_rate [URL] [bytes]`.
//!
//! Publishes as fast as Redis and the reader can handle, in a hundred channels, for three seconds,
//! and checks that everything arrives. Redis disconnects a subscriber that is 32 MB behind, so the
//! publisher never gets that far ahead.

use std::{
    error::Error,
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use linerate_broker::{BoxFuture, Broker, BrokerOptions, Event, Ingest, Redis, StreamOptions};
use linerate_hub::ChannelName;

const CHANNELS: u64 = 100;

/// The number of payload bytes that may be in flight at a time.
const AHEAD_BYTES: usize = 4 << 20;

/// The number of commands that may wait for their answers at a time.
const PIPELINED_MAX: u64 = 500;

/// Counts the messages and bytes that arrive.
#[derive(Default)]
struct Node {
    messages: AtomicU64,
    bursts: AtomicU64,
}

impl Ingest for Node {
    fn ingest(&self, events: Vec<Event>) -> BoxFuture<'_, ()> {
        let is_publication = |event: &&Event| matches!(event, Event::Publication { .. });
        let messages = events.iter().filter(is_publication).count();
        self.messages.fetch_add(messages as u64, Ordering::Relaxed);
        self.bursts.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next();
    let url = url.unwrap_or_else(|| "redis://127.0.0.1:6379".to_owned());
    let bytes = arguments.next().map_or(Ok(250), |text| text.parse())?;
    let node = Arc::new(Node::default());
    let redis = Redis::new(&url, BrokerOptions::default(), Arc::clone(&node) as _)?;
    let options = StreamOptions {
        is_durable: false,
        size_max: 100,
        ttl: Duration::from_secs(60),
    };
    for number in 0..CHANNELS {
        let channel = ChannelName::new(&format!("rate:{number}"))?;
        redis.subscribe(&channel, options).await?;
    }
    let address = url.trim_start_matches("redis://").to_owned();
    let started = Instant::now();
    let before = reader_time()?;
    let received = Arc::clone(&node);
    let publisher = thread::spawn(move || {
        let published = publish(&address, bytes, &received.messages);
        published.map_err(|error| error.to_string())
    });
    let published = publisher.join().map_err(|_| "publisher panicked")??;
    while node.messages.load(Ordering::Relaxed) < published {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (seconds, busy) = (started.elapsed().as_secs_f64(), reader_time()? - before);
    let messages = node.messages.load(Ordering::Relaxed);
    println!(
        "{messages} messages of {bytes} bytes in {seconds:.2} s: {:.0} per second, \
         {:.1} per burst; the reader was busy for {:.2} s, {:.0} messages per second of its time",
        messages as f64 / seconds,
        messages as f64 / node.bursts.load(Ordering::Relaxed) as f64,
        busy.as_secs_f64(),
        messages as f64 / busy.as_secs_f64(),
    );
    Ok(())
}

/// Publishes for three seconds and returns the number of messages.
fn publish(address: &str, bytes: usize, received: &AtomicU64) -> Result<u64, Box<dyn Error>> {
    let ahead = (AHEAD_BYTES / bytes.max(1)).max(2) as u64;
    let pipelined = PIPELINED_MAX.min(ahead / 2);
    let mut stream = TcpStream::connect(address)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let payload = "x".repeat(bytes);
    let end = Instant::now() + Duration::from_secs(3);
    let (mut published, mut answer) = (0, String::new());
    while Instant::now() < end {
        let mut commands = Vec::new();
        for number in 0..pipelined {
            let channel = format!("rate:{}", (published + number) % CHANNELS);
            write!(
                commands,
                "*3\r\n$7\r\nPUBLISH\r\n${}\r\n{channel}\r\n${bytes}\r\n{payload}\r\n",
                channel.len(),
            )?;
        }
        stream.write_all(&commands)?;
        for _ in 0..pipelined {
            answer.clear();
            answers.read_line(&mut answer)?;
            if answer.trim() != ":1" {
                return Err(format!("answer to PUBLISH was {answer:?}").into());
            }
        }
        published += pipelined;
        while published - received.load(Ordering::Relaxed) > ahead {
            thread::yield_now();
        }
    }
    Ok(published)
}

/// Returns how much processor time the broker's thread has used (Linux only).
fn reader_time() -> Result<Duration, Box<dyn Error>> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == "broker-redis" {
            let schedule = fs::read_to_string(task.join("schedstat"))?;
            let nanoseconds = schedule.split(' ').next().unwrap_or_default();
            return Ok(Duration::from_nanos(nanoseconds.parse()?));
        }
    }
    Err("there is no thread of the broker".into())
}
