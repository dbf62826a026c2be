//! Idle connections: how much memory they cost a server.
//!
//! Resident memory is read before the first connection, when all connections are open, and again
//! after each has had one message echoed. Many servers allocate buffers for that message, and some
//! of them keep these.

use std::thread;
use std::time::{Duration, Instant};

use linerate_proto::Opcode;

use super::crowd::open_all;
use super::link::Link;
use super::message::{Expected, Message, mask_key};
use super::meter::Meter;
use super::watch::Watch;
use super::{Budget, LoadError, Probe, Target, Wire};
use crate::cell::Idle;
use crate::record::{Figures, IdleMemory};

/// Number of connections whose messages are in flight at a time.
const BATCH: usize = 64;

/// Number of bytes to read at a time.
const READ_BYTES: usize = 64 << 10;

/// Number of successive readings that must be the same before resident memory counts as settled.
const SETTLED_LOOKS: u32 = 5;

/// Time between two readings.
const LOOK_INTERVAL: Duration = Duration::from_millis(40);

/// After this long, memory that has not settled is taken as it is. Some runtimes return memory over
/// minutes.
const SETTLE_MAX: Duration = Duration::from_secs(2);

/// Differences that do not count as a change: a fraction, and an absolute amount for small servers.
const SETTLED_FRACTION: f64 = 0.001;
const SETTLED_BYTES: u64 = 64 << 10;

/// Opens the connections, has each echo one message, and closes them.
///
/// # Errors
///
/// Returns an error if the server fails or its process cannot be inspected, or if the system does
/// not allow as many connections.
pub(super) fn measure(
    load: &Idle,
    target: &Target,
    budget: &Budget,
    probe: &mut dyn Probe,
) -> Result<Figures, LoadError> {
    probe.reset_peak().map_err(LoadError::Gone)?;
    // The cost of one more connection does not include what a server loads or allocates for its
    // first connection.
    let mut first = IdleConnections::open(1, load, target, budget)?;
    first.echo()?;
    first.abandon()?;
    let resident_bytes_before = settle(probe)?;

    let meter = Meter::start(probe)?;
    let mut connections = IdleConnections::open(load.connections, load, target, budget)?;
    let resident_bytes_idle = settle(probe)?;
    connections.echo()?;
    let resident_bytes_after = settle(probe)?;
    let figures = meter.read(probe)?;

    connections.abandon()?;
    let messages = f64::from(load.connections);
    Ok(Figures {
        messages,
        payload_bytes: messages * f64::from(load.payload_bytes),
        connections: messages,
        idle: Some(IdleMemory {
            connections: load.connections,
            resident_bytes_before,
            resident_bytes_idle,
            resident_bytes_after,
        }),
        ..figures
    })
}

/// Waits until the server's resident memory has settled. Returns its size in bytes.
fn settle(probe: &mut dyn Probe) -> Result<u64, LoadError> {
    let deadline = Instant::now() + SETTLE_MAX;
    let mut settled = resident_bytes(probe)?;
    let mut looks = 0;
    while looks < SETTLED_LOOKS && Instant::now() < deadline {
        thread::sleep(LOOK_INTERVAL);
        let now = resident_bytes(probe)?;
        let tolerance = SETTLED_BYTES.max((settled as f64 * SETTLED_FRACTION) as u64);
        if now.abs_diff(settled) > tolerance {
            settled = now;
            looks = 0;
        } else {
            looks += 1;
        }
    }
    resident_bytes(probe)
}

fn resident_bytes(probe: &mut dyn Probe) -> Result<u64, LoadError> {
    match probe.usage().map_err(LoadError::Gone)? {
        Some(usage) => Ok(usage.resident_bytes),
        None => Err(LoadError::Unseen),
    }
}

/// Connections, and the payload of the message that each echoes.
struct IdleConnections {
    links: Vec<Link>,
    wire: Wire,
    silence_max: Duration,
    payload: Vec<u8>,
}

impl IdleConnections {
    fn open(
        connections: u32,
        load: &Idle,
        target: &Target,
        budget: &Budget,
    ) -> Result<Self, LoadError> {
        Ok(Self {
            links: open_all(target, connections, Opcode::Binary, budget.silence_max)?,
            wire: target.wire,
            silence_max: budget.silence_max,
            // The bytes of the payload have all values, so they are not valid UTF-8.
            payload: (0..load.payload_bytes).map(|place| !place as u8).collect(),
        })
    }

    /// Sends a different message on each connection and waits for all echoes.
    fn echo(&mut self) -> Result<(), LoadError> {
        let mut buffer = vec![0; READ_BYTES];
        for (batch, links) in self.links.chunks_mut(BATCH).enumerate() {
            let echoes: Vec<EchoMessage> = (0..links.len())
                .map(|place| EchoMessage::new(batch * BATCH + place, &mut self.payload, self.wire))
                .collect();
            let mut watch = Watch::new(&*links)?;
            for (link, echo) in links.iter_mut().zip(&echoes) {
                link.send(echo.sent.frame())?;
            }
            let mut missing = links.len();
            while missing > 0 {
                let mut any = false;
                for place in watch.wait(self.silence_max)? {
                    any = true;
                    let (link, echo) = (&mut links[place], &echoes[place]);
                    let before = link.answers.messages();
                    link.receive(&mut buffer, |message| {
                        (message == 0).then(|| echo.expected())
                    })?;
                    link.flush()?;
                    missing -= (link.answers.messages() - before) as usize;
                }
                if !any {
                    return Err(LoadError::Silent(self.silence_max));
                }
            }
        }
        Ok(())
    }

    /// Resets all connections.
    fn abandon(self) -> Result<(), LoadError> {
        self.links.into_iter().try_for_each(Link::abandon)
    }
}

/// A message and its echo.
struct EchoMessage {
    sent: Message,
    /// The expected echo; `None` on a raw wire, where it is the message as it was sent.
    due: Option<Message>,
}

impl EchoMessage {
    /// Builds the message of connection `number`. Its payload begins with that number.
    fn new(number: usize, payload: &mut [u8], wire: Wire) -> Self {
        let stamp = (number as u32).to_be_bytes();
        let stamp_bytes = stamp.len().min(payload.len());
        payload[..stamp_bytes].copy_from_slice(&stamp[stamp.len() - stamp_bytes..]);
        Self {
            sent: Message::new(Opcode::Binary, payload, Some(mask_key(number as u64))),
            due: match wire {
                Wire::Raw => None,
                Wire::WebSocket => Some(Message::new(Opcode::Binary, payload, None)),
            },
        }
    }

    fn expected(&self) -> Expected<'_> {
        match &self.due {
            Some(due) => due.expected(),
            None => self.sent.expected_raw(),
        }
    }
}

#[cfg(test)]
mod tests;
