//! A fan-out: one publisher's messages, each delivered to all connections.
//!
//! The messages contain their numbers, and every connection has to receive the same bytes in the
//! same order. A delivery that is lost, repeated or out of order therefore shows as a byte that
//! differs. The expected bytes are stored once for all connections.

mod publication;

use std::time::{Duration, Instant};

use linerate_proto::Opcode;

use super::crowd::open_all;
use super::link::Link;
use super::meter::{Latencies, Meter};
use super::watch::Watch;
use super::{Budget, LoadError, Probe, Target};
use crate::cell::Fanout;
use crate::record::Figures;
use publication::Publications;

/// Number of bytes to read at a time.
const READ_BYTES: usize = 64 << 10;

/// If nothing arrives on any connection for this long, a connection that has not received a message
/// was not subscribed yet when the message was published.
const SUBSCRIBING: Duration = Duration::from_millis(500);

/// Index of the connection that publishes.
const PUBLISHER: usize = 0;

/// Publishes for the duration of the warm-up and of the measurement.
///
/// # Errors
///
/// Returns an error if the server fails, or if a connection receives anything other than what was
/// published.
pub(super) fn measure(
    load: &Fanout,
    target: &Target,
    budget: &Budget,
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    probe.reset_peak().map_err(LoadError::Gone)?;
    let mut connections = FanoutConnections::open(load, target, budget)?;
    connections.subscribe()?;
    connections.publish_for(budget.warm_up)?;

    connections.latencies.clear();
    connections.delivered = 0;
    let meter = Meter::start(probe)?;
    connections.publish_for(budget.measured)?;
    let figures = meter.read(probe)?;
    let messages = connections.delivered as f64;
    let latency = connections.latencies.percentiles();

    connections.finish()?;
    Ok(Figures {
        messages,
        payload_bytes: messages * f64::from(load.payload_bytes),
        latency,
        ..figures
    })
}

/// All connections: the publisher's and the subscribers'.
struct FanoutConnections {
    links: Vec<Link>,
    watch: Watch,
    silence_max: Duration,
    window: u64,
    publications: Publications,
    /// Number of deliveries to subscribers.
    delivered: u64,
    latencies: Latencies,
    buffer: Vec<u8>,
}

impl FanoutConnections {
    fn open(load: &Fanout, target: &Target, budget: &Budget) -> Result<Self, LoadError> {
        let connections = load.subscribers + 1;
        let links = open_all(target, connections, Opcode::Text, budget.silence_max)?;
        Ok(Self {
            watch: Watch::new(&links)?,
            links,
            silence_max: budget.silence_max,
            window: u64::from(load.window.max(1)),
            publications: Publications::new(load, target.wire),
            delivered: 0,
            latencies: Latencies::new(),
            buffer: vec![0; READ_BYTES],
        })
    }

    /// Publishes one message after another until one has reached all connections. Servers may
    /// answer an opening handshake before the connection receives what is published.
    fn subscribe(&mut self) -> Result<(), LoadError> {
        let start = Instant::now();
        while start.elapsed() < self.silence_max {
            self.publish()?;
            while self.publications.in_flight() > 0 && self.receive(SUBSCRIBING)? {}
            if self.publications.in_flight() == 0 {
                return Ok(());
            }
            // The message is treated as delivered. If it still arrives on a connection later, that
            // connection fails.
            self.publications.give_up();
            let next = self.publications.published();
            if !self.links.iter_mut().all(|link| link.answers.skip_to(next)) {
                break;
            }
        }
        Err(LoadError::Silent(self.silence_max))
    }

    /// Keeps the window full for `time`.
    fn publish_for(&mut self, time: Duration) -> Result<(), LoadError> {
        let start = Instant::now();
        while start.elapsed() < time {
            while self.publications.in_flight() < self.window {
                self.publish()?;
            }
            self.receive_or_fail()?;
        }
        Ok(())
    }

    /// Waits until no message is in flight, then closes all connections.
    fn finish(mut self) -> Result<(), LoadError> {
        while self.publications.in_flight() > 0 {
            self.receive_or_fail()?;
        }
        self.links.into_iter().try_for_each(Link::abandon)
    }

    fn publish(&mut self) -> Result<(), LoadError> {
        let connections = self.links.len() as u32;
        let frame = self.publications.publish(connections);
        self.links[PUBLISHER].send(frame)
    }

    fn receive_or_fail(&mut self) -> Result<(), LoadError> {
        match self.receive(self.silence_max)? {
            true => Ok(()),
            false => Err(LoadError::Silent(self.silence_max)),
        }
    }

    /// Receives on the connections that become ready first. Returns whether any became ready within
    /// `time`.
    fn receive(&mut self, time: Duration) -> Result<bool, LoadError> {
        let mut any = false;
        for place in self.watch.wait(time)? {
            any = true;
            let link = &mut self.links[place];
            let before = link.answers.messages();
            let publications = &self.publications;
            link.receive(&mut self.buffer, |message| publications.expected(message))?;
            link.flush()?;
            let now = Instant::now();
            for message in before..link.answers.messages() {
                let published = self.publications.deliver(message);
                if place != PUBLISHER {
                    self.delivered += 1;
                    self.latencies.record(now - published);
                }
            }
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests;
