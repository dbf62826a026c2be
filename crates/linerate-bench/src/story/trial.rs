//! A trial of one rate: what was published, what was received, and what that cost.

use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::audience::{Audience, Received};
use super::feed::{Feed, LARGE_BYTES, Published};
use super::{Cell, Peer, StoryError};
use crate::load::Probe;
use crate::record::Latency;
use crate::server::{Launcher, Server};

/// How long subscribers have after the end of publishing to receive the rest.
const DRAIN_MAX: Duration = Duration::from_secs(2);

/// How long to wait for messages at a time.
const STEP: Duration = Duration::from_millis(20);

/// A publisher with a larger delay could not keep the rate, which is not the server's fault.
const LATE_MAX: Duration = Duration::from_millis(250);

/// Deliveries with a larger delay, in addition to what batching adds, mean that the server is
/// behind.
const LATENCY_MAX: Duration = Duration::from_millis(500);

/// How long subscribers may take to receive their first messages.
const FIRST_MAX: Duration = Duration::from_secs(10);

/// How long subscribers may take to receive the messages that fill the stalled connections.
const FILL_MAX: Duration = Duration::from_secs(120);

/// Deliveries per second while nothing is measured.
const GENTLE_DELIVERIES: f64 = 60_000.0;

/// Duration of one round of publishing, which is repeated until each subscriber has received
/// something.
const GENTLE_TIME: Duration = Duration::from_millis(300);

/// Number of bytes to publish for a subscriber that reads nothing, before it counts as stalled.
/// They exceed what its socket, which the kernel lets grow to 2.6 MB on the loopback interface, and
/// its queue in the server can hold.
const FILL_BYTES: f64 = 3.6e6;

/// The result of one rate.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// Name of the server.
    pub peer: String,
    /// Protocol of its clients.
    pub dialect: &'static str,
    /// Number of subscribers.
    pub subscribers: u32,
    /// Number of sources from which the messages came.
    pub sources: u32,
    /// Interval of the batches in milliseconds; 0 means no batches.
    pub batch_ms: u32,
    /// Number of additional subscribers that read nothing.
    pub stalled: u32,
    /// Intended rate of publishing, in messages a second.
    pub rate: f64,
    /// Duration of publishing, in seconds.
    pub seconds: f64,
    /// Number of messages that were published.
    pub published: u64,
    /// What the subscribers received.
    #[serde(flatten)]
    pub received: Received,
    /// Time from when a message was due to be published until it arrived.
    pub latency: Option<Latency>,
    /// CPU time of the server, in seconds.
    pub cpu_s: f64,
    /// Number of messages delivered per second of the server's CPU time.
    pub delivered_per_cpu_s: f64,
    /// Peak of the server's resident memory, in bytes.
    pub resident_bytes_peak: u64,
    /// Largest delay of the publisher, in seconds.
    pub publisher_late_s: f64,
}

impl Trial {
    /// Returns whether the publisher could keep the rate.
    pub fn is_on_schedule(&self) -> bool {
        self.publisher_late_s <= LATE_MAX.as_secs_f64()
    }

    /// Returns whether every message arrived, once, in order and in time.
    pub fn is_sustained(&self) -> bool {
        let late_us =
            (LATENCY_MAX + Duration::from_millis(self.batch_ms.into())).as_micros() as f64;
        let in_time = self
            .latency
            .as_ref()
            .is_none_or(|latency| latency.p99_us <= late_us);
        let Received {
            lost,
            repeated,
            wrong,
            ended,
            ..
        } = self.received;
        self.is_on_schedule() && in_time && lost + repeated + wrong + ended == 0
    }
}

/// A server with its subscribers and its publisher.
#[derive(Debug)]
pub struct Testbed<'a> {
    peer: &'a Peer,
    cell: Cell,
    server: Server,
    audience: Audience,
    feed: Feed,
    trials: u32,
}

impl<'a> Testbed<'a> {
    /// Starts the server, connects the subscribers and waits until each has received a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not start, or if a subscriber receives nothing.
    pub fn open(
        peer: &'a Peer,
        cell: Cell,
        launcher: &Launcher,
        cores: &[u32],
        redis: &Server,
    ) -> Result<Self, StoryError> {
        let server = peer.start(launcher, cores, redis)?;
        let start = Instant::now();
        let audience = Audience::open(server.address(), peer, cell, start)?;
        let mut testbed = Self {
            feed: Feed::connect(
                redis.address(),
                peer.dialect.envelope(),
                cell.sources,
                start,
            )?,
            peer,
            cell,
            server,
            audience,
            trials: 0,
        };
        testbed.wait_for_all(FIRST_MAX)?;
        if cell.stalled.is_some() {
            testbed.fill()?;
            testbed.wait_for_all(FILL_MAX)?;
        }
        Ok(testbed)
    }

    /// Publishes until the connections of subscribers that read nothing are full. The other
    /// subscribers may be behind at the end.
    fn fill(&mut self) -> Result<(), StoryError> {
        let rate = gentle_rate(self.cell);
        let messages = FILL_BYTES * f64::from(self.cell.sources) / LARGE_BYTES as f64;
        self.feed.set_large(true);
        let filled = self.try_rate(rate, Duration::from_secs_f64(messages / rate));
        self.feed.set_large(false);
        filled.map(drop)
    }

    /// Publishes slowly until every subscriber has received a message.
    fn wait_for_all(&mut self, max: Duration) -> Result<(), StoryError> {
        let begun = Instant::now();
        loop {
            self.trials += 1;
            self.audience.begin(self.trials);
            let published = self
                .feed
                .publish(self.trials, gentle_rate(self.cell), GENTLE_TIME)?;
            let until = Instant::now() + Duration::from_millis(700);
            while self.audience.waiting(&published.counts) > 0 && Instant::now() < until {
                self.audience.listen(STEP)?;
            }
            match self.audience.waiting(&published.counts) {
                0 => return Ok(()),
                waiting if begun.elapsed() > max => {
                    return Err(StoryError::Silent {
                        waiting,
                        subscribers: self.cell.subscribers as usize,
                        waited: begun.elapsed(),
                    });
                }
                _ => {}
            }
        }
    }

    /// Publishes at `rate` for `time` and returns the results.
    ///
    /// # Errors
    ///
    /// Returns an error if Redis or the server has exited.
    pub fn try_rate(&mut self, rate: f64, time: Duration) -> Result<Trial, StoryError> {
        self.trials += 1;
        self.audience.begin(self.trials);
        let gone = |what: std::io::Error| StoryError::NotRunning {
            program: self.peer.name.clone(),
            what: what.to_string(),
        };
        let probe = &mut self.server;
        probe.reset_peak().map_err(gone)?;
        let before = probe.usage().map_err(gone)?.unwrap_or_default();
        let published =
            publish_and_listen(&mut self.feed, &mut self.audience, self.trials, rate, time)?;
        let after = self.server.usage().map_err(gone)?.unwrap_or_default();
        let cpu_s = (after.cpu - before.cpu).as_secs_f64();
        let received = self.audience.received(&published.counts).clone();
        Ok(Trial {
            peer: self.peer.name.clone(),
            dialect: self.peer.protocol(),
            subscribers: self.cell.subscribers,
            sources: self.cell.sources,
            batch_ms: self.cell.batch_ms,
            stalled: self.cell.stalled.unwrap_or_default(),
            rate,
            seconds: published.elapsed.as_secs_f64(),
            published: published.counts.iter().sum(),
            latency: self.audience.latency(),
            cpu_s,
            delivered_per_cpu_s: received.delivered as f64 / cpu_s.max(1e-3),
            resident_bytes_peak: after.resident_bytes_peak,
            publisher_late_s: published.late_max.as_secs_f64(),
            received,
        })
    }
}

/// Returns a rate, in messages a second, at which no server has much to do, but at which each
/// source publishes a message every 300 ms.
fn gentle_rate(cell: Cell) -> f64 {
    let deliveries = cell.subscribers.div_ceil(cell.sources).max(1);
    (GENTLE_DELIVERIES / f64::from(deliveries))
        .min(1_000.0)
        .max(f64::from(cell.sources) / GENTLE_TIME.as_secs_f64())
}

/// Publishes on another thread while this one receives, until everything has arrived or a timeout
/// elapses.
fn publish_and_listen(
    feed: &mut Feed,
    audience: &mut Audience,
    trial: u32,
    rate: f64,
    time: Duration,
) -> Result<Published, StoryError> {
    let published = thread::scope(|scope| {
        let publisher = scope.spawn(|| feed.publish(trial, rate, time));
        while !publisher.is_finished() {
            audience.listen(STEP)?;
        }
        publisher.join().expect("the publisher does not panic")
    })?;
    let until = Instant::now() + DRAIN_MAX;
    while audience.waiting(&published.counts) > 0 && Instant::now() < until {
        audience.listen(STEP)?;
    }
    Ok(published)
}
