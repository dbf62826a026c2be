//! Clients that behave well, and measure how long they wait for their answers.

pub(crate) mod neighbour;
pub(crate) mod wire;

use std::{
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use rustls::ClientConfig;

use self::wire::Wire;
use crate::{cores, waits::p99, websocket::frame};

/// The number of live clients.
pub(crate) const CLIENTS: usize = 32;

/// The time between two messages of all clients together.
const INTERVAL: Duration = Duration::from_micros(250);

/// A client that gets no answer within this time counts as not served.
const PATIENCE: Duration = Duration::from_secs(10);

/// A text message of 16 bytes, masked with zeros.
const MESSAGE: &[u8] = b"\x81\x90\0\0\0\0how do you do???";

/// The endpoint that clients connect to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// The path of an endpoint that echoes each message.
    pub(crate) path: &'static str,
    /// The TLS configuration, if the server uses TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

/// Clients that behave well.
pub(crate) struct LiveClients {
    target: Target,
    wires: Vec<Wire>,
}

impl LiveClients {
    pub(crate) fn open(target: Target) -> Result<Self> {
        let wires = (0..CLIENTS).map(|_| open(&target));
        Ok(Self {
            wires: wires.collect::<Result<_>>()?,
            target,
        })
    }

    /// Sends messages at a steady rate for `duration`, one client after another. Returns the 99th
    /// percentile of the time until the answer.
    ///
    /// That time ends when the server has handed its answer to the kernel, according to the
    /// kernel's timestamp: when this process then gets CPU time depends on the machine. An answer
    /// that was late has delayed later messages; each of these counts with the time that it would
    /// have waited.
    pub(crate) fn p99(&mut self, duration: Duration) -> Result<Duration> {
        let _bound = cores::borrow_last()?;
        let mut waits = Vec::new();
        let started = Instant::now();
        let mut due = started;
        while due < started + duration {
            for wire in &mut self.wires {
                let now = Instant::now();
                match due.checked_duration_since(now) {
                    Some(pause) => thread::sleep(pause),
                    // Delays by the server are in `waits` already; others are not its fault.
                    None => due = now,
                }
                let mut wait = exchange(wire).context("live client was not served")?;
                due += INTERVAL;
                waits.push(wait);
                while wait > INTERVAL {
                    wait -= INTERVAL;
                    waits.push(wait);
                }
            }
        }
        Ok(p99(&mut waits))
    }

    /// Opens connections one after another for `duration`. Returns the 99th percentile of the time
    /// until the first answer on a new connection.
    pub(crate) fn connecting_p99(&self, duration: Duration) -> Result<Duration> {
        let _bound = cores::borrow_last()?;
        let mut waits = Vec::new();
        let started = Instant::now();
        while started.elapsed() < duration {
            let connecting = Instant::now();
            let mut wire = open(&self.target).context("live client cannot connect")?;
            exchange(&mut wire)?;
            waits.push(connecting.elapsed());
            thread::sleep(Duration::from_millis(2));
        }
        Ok(p99(&mut waits))
    }
}

/// Connects, has a message echoed, and disconnects. Returns the server's certificate, if it uses
/// TLS.
pub(crate) fn visit(target: &Target) -> Result<Option<Vec<u8>>> {
    let mut wire = open(target)?;
    exchange(&mut wire)?;
    Ok(wire.certificate())
}

fn open(target: &Target) -> Result<Wire> {
    let Target { address, path, tls } = target;
    Wire::open(*address, tls.clone(), PATIENCE, path, "")
}

/// Sends a message, and returns the time until its echo.
fn exchange(wire: &mut Wire) -> Result<Duration> {
    let sent = SystemTime::now();
    wire.write(MESSAGE)?;
    read_echo(wire)?;
    // The clock may have been set.
    Ok(wire.stamp().duration_since(sent).unwrap_or_default())
}

/// Reads until the echo arrives, and answers Pings meanwhile.
fn read_echo(wire: &mut Wire) -> Result<()> {
    loop {
        match wire.read_frame()? {
            (0x81, _) => return Ok(()),
            (0x89, payload) => wire.write(&frame(0xA, &payload).to_bytes())?,
            (first, _) => {
                bail!("live client received an unexpected frame with first byte {first:#x}")
            }
        }
    }
}
