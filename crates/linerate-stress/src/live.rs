//! Clients that behave well, and measure how long they wait for their answers.

pub(crate) mod neighbour;
pub(crate) mod wire;

use std::{
    io,
    net::SocketAddr,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail};
use rustls::ClientConfig;

use self::wire::Wire;
use crate::cores::OnLast;

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

impl Target {
    /// Returns a request that opens a WebSocket, with the additional header lines `more`.
    pub(crate) fn request(path: &str, more: &str) -> String {
        format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
             Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Version: 13\r\n{more}\r\n"
        )
    }
}

/// Clients that behave well.
pub(crate) struct Live {
    target: Target,
    wires: Vec<Wire>,
}

impl Live {
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
        let _bound = OnLast::take()?;
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
        let place = waits.len() * 99 / 100;
        Ok(*waits.select_nth_unstable(place).1)
    }

    /// Opens connections one after another for `duration`. Returns the 99th percentile of the time
    /// until the first answer on a new connection.
    pub(crate) fn connecting_p99(&self, duration: Duration) -> Result<Duration> {
        let _bound = OnLast::take()?;
        let mut waits = Vec::new();
        let started = Instant::now();
        while started.elapsed() < duration {
            let connecting = Instant::now();
            let mut wire = open(&self.target).context("live client cannot connect")?;
            exchange(&mut wire)?;
            waits.push(connecting.elapsed());
            thread::sleep(Duration::from_millis(2));
        }
        let place = waits.len() * 99 / 100;
        Ok(*waits.select_nth_unstable(place).1)
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
    let mut wire = Wire::connect(target.address, target.tls.clone(), PATIENCE)?;
    wire.write(Target::request(target.path, "").as_bytes())?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(wire.read_byte()?);
    }
    if !head.starts_with(b"HTTP/1.1 101 ") {
        bail!("live client refused: {}", head.escape_ascii());
    }
    Ok(wire)
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
        let head = [wire.read_byte()?, wire.read_byte()?];
        let payload: Vec<u8> = (0..head[1])
            .map(|_| wire.read_byte())
            .collect::<io::Result<_>>()?;
        match head[0] {
            0x81 => return Ok(()),
            0x89 => {
                let mut pong = vec![0x8A, 0x80 | head[1], 0, 0, 0, 0];
                pong.extend(payload);
                wire.write(&pong)?;
            }
            first => bail!("live client received an unexpected frame with first byte {first:#x}"),
        }
    }
}
