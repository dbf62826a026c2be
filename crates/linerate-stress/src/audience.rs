//! The process of subscribers that read everything, and measure how long each publication took to
//! arrive.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    net::{SocketAddr, TcpStream},
    sync::mpsc::TryRecvError,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result, bail};
use rustix::event::{
    Timespec,
    epoll::{self, CreateFlags, EventData, EventFlags},
};

use crate::{
    child::orders,
    cores,
    live::wire::{receive, stamp},
    waits::p99,
    websocket::{frame, request, wait_for_open, whole_frame},
};

/// The first argument of such a process.
pub(crate) const AUDIENCE: &str = "audience";

/// The channel of the subscribers, and the path of their requests.
pub(crate) const CHANNEL: &str = "demo:stress";
pub(crate) const PATH: &str = "/raw?channel=demo:stress";

/// How many subscribers are opened at the same time.
const BATCH: usize = 64;

/// How long to wait for input before checking for commands.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 10_000_000,
};

/// What the audience reports about the publications since the last report.
pub(crate) type AudienceReport = BTreeMap<String, u64>;

struct Subscriber {
    stream: TcpStream,
    /// The beginning of a frame that is not complete.
    unparsed: Vec<u8>,
}

/// Opens the subscribers and reports it; then answers each line of standard input with what was
/// received since the last one, until the input ends.
pub(crate) fn listen(server: SocketAddr, count: usize) -> Result<()> {
    cores::take_last()?;
    cores::go_first();
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut subscribers = Vec::new();
    while subscribers.len() < count {
        let batch = BATCH.min(count - subscribers.len());
        let opened = (0..batch).map(|_| Subscriber::ask(server));
        let opened: io::Result<Vec<_>> = opened.collect();
        for mut subscriber in opened? {
            subscriber.wait_for_open()?;
            let data = EventData::new_u64(subscribers.len() as u64);
            epoll::add(&epoll, &subscriber.stream, data, EventFlags::IN)?;
            subscribers.push(subscriber);
        }
    }
    println!("{{}}");
    let orders = orders();
    let mut waits: Vec<Duration> = Vec::new();
    let mut events = vec![
        epoll::Event {
            flags: EventFlags::empty(),
            data: EventData::new_u64(0),
        };
        512
    ];
    loop {
        match orders.try_recv() {
            Ok(_) => println!("{}", serde_json::to_string(&summary(&mut waits))?),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        let ready = epoll::wait(&epoll, &mut events[..], Some(&LOOK))?;
        for event in &events[..ready] {
            let subscriber = &mut subscribers[event.data.u64() as usize];
            subscriber.read(&mut waits).context("live subscriber")?;
        }
    }
}

fn summary(waits: &mut Vec<Duration>) -> AudienceReport {
    let mut report = AudienceReport::from([("publications".to_owned(), waits.len() as u64)]);
    if !waits.is_empty() {
        let p99 = p99(waits).as_micros();
        report.insert("p99 µs".to_owned(), u64::try_from(p99).unwrap_or(u64::MAX));
    }
    waits.clear();
    report
}

impl Subscriber {
    fn ask(server: SocketAddr) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server)?;
        stream.set_nodelay(true)?;
        stamp(&stream)?;
        stream.write_all(request(PATH, "").as_bytes())?;
        Ok(Self {
            stream,
            unparsed: Vec::new(),
        })
    }

    fn wait_for_open(&mut self) -> Result<()> {
        wait_for_open(&mut self.stream)?;
        Ok(self.stream.set_nonblocking(true)?)
    }

    /// Reads once, and adds how long each publication took to arrive.
    fn read(&mut self, waits: &mut Vec<Duration>) -> Result<()> {
        let mut buffer = [0; 64 << 10];
        let (bytes, stamp) = match receive(&self.stream, &mut buffer) {
            Ok((0, _)) => bail!("connection closed by the server"),
            Ok(received) => received,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        self.unparsed.extend_from_slice(&buffer[..bytes]);
        let mut done = 0;
        while let Some((first, payload)) = whole_frame(&self.unparsed[done..]) {
            let begin = done + payload.start;
            done += payload.end;
            let payload = &self.unparsed[begin..done];
            match first {
                0x81 => waits.push(on_its_way(payload, stamp)?),
                0x89 => {
                    self.stream.write_all(&frame(0xA, payload).to_bytes())?;
                }
                first => bail!("received an unexpected frame with first byte {first:#x}"),
            }
        }
        self.unparsed.drain(..done);
        Ok(())
    }
}

/// Returns a publication of `bytes` bytes that contains the current time.
pub(crate) fn publication(bytes: usize) -> Result<String> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let head = format!(r#"{{"at":{},"more":""#, now.as_nanos());
    let more = "x".repeat(bytes.saturating_sub(head.len() + 2));
    Ok(format!(r#"{head}{more}"}}"#))
}

fn on_its_way(payload: &[u8], stamp: SystemTime) -> Result<Duration> {
    // Nanoseconds since 1970 have 19 digits until 2286.
    let digits = payload.get(6..25).context("publication is too short")?;
    let nanos: u64 = std::str::from_utf8(digits)?.parse()?;
    let made = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos);
    Ok(stamp.duration_since(made).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{on_its_way, publication};

    #[test]
    fn a_publication_tells_when_it_was_made() {
        let before = SystemTime::now();
        let publication = publication(1_000).unwrap();
        assert_eq!(publication.len(), 1_000);
        let stamp = SystemTime::now() + Duration::from_secs(3);
        let waited = on_its_way(publication.as_bytes(), stamp).unwrap();
        assert!(waited >= Duration::from_secs(3));
        assert!(waited <= stamp.duration_since(before).unwrap());
    }
}
