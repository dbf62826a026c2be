//! The process of the attackers.

use std::{
    collections::VecDeque,
    error::Error,
    io::{self, BufRead, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use rustix::net::sockopt;

use crate::{abuse::Abuse, cores, live};

/// The time between two strokes.
const STROKE: Duration = Duration::from_millis(10);

/// Frames for each stroke and connection: over all connections a million in a second.
const FRAMES: usize = 2_500;

/// Fragments of one message; the server allows 131,072.
const FRAGMENTS: usize = 40 * FRAMES;

/// Connections that are opened in a second.
pub(crate) const CONNECTS: usize = 500;

/// What slow readers send.
pub(crate) const MESSAGE_BYTES: usize = 16 << 10;

/// Messages of each slow reader in a stroke.
const MESSAGES: usize = 4;

/// Attacks and pauses as the lines of the standard input say, until its end.
pub(crate) fn obey(abuse: Abuse, server: SocketAddr) -> Result<(), Box<dyn Error>> {
    cores::take_what_is_left()?;
    let (sender, orders) = mpsc::channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            _ = sender.send(line == "on");
        }
    });
    while let Ok(is_on) = orders.recv() {
        println!("done");
        if is_on {
            attack(abuse, server, &orders)?;
            println!("done");
        }
    }
    Ok(())
}

/// Attacks until the next order, which must be to stop. All connections are gone then.
fn attack(abuse: Abuse, server: SocketAddr, orders: &Receiver<bool>) -> Result<(), Box<dyn Error>> {
    let mut attackers = VecDeque::new();
    let mut next = Instant::now();
    loop {
        stroke(abuse, server, &mut attackers)?;
        next += STROKE;
        let pause = next.saturating_duration_since(Instant::now());
        match orders.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

/// Does what is to be done of an abuse in one stroke.
fn stroke(
    abuse: Abuse,
    server: SocketAddr,
    attackers: &mut VecDeque<Attacker>,
) -> Result<(), Box<dyn Error>> {
    const CONNECTS_OF_A_STROKE: usize = CONNECTS * STROKE.as_millis() as usize / 1_000;
    match abuse {
        Abuse::Churn => {
            for _ in 0..CONNECTS_OF_A_STROKE {
                Attacker::connect(server)?;
            }
        }
        Abuse::HalfOpen | Abuse::Silence => {
            for _ in 0..CONNECTS_OF_A_STROKE {
                attackers.push_back(match abuse {
                    Abuse::HalfOpen => Attacker::open(server)?,
                    _ => Attacker::connect(server)?,
                });
            }
            let gone = attackers.len().saturating_sub(abuse.connections());
            attackers.drain(..gone);
        }
        Abuse::EmptyFragments | Abuse::Pings | Abuse::SlowReaders | Abuse::TinyFragments => {
            // Slow readers are dropped by the server, and come again.
            attackers.retain(|attacker| !attacker.is_lost);
            while attackers.len() < abuse.connections() {
                attackers.push_back(Attacker::open(server)?);
            }
            for attacker in attackers {
                attacker.flood(abuse);
            }
        }
    }
    Ok(())
}

/// One connection of an attacker.
struct Attacker {
    stream: TcpStream,
    /// What the server's socket did not take so far.
    unsent: Vec<u8>,
    /// Fragments of the message that is being sent.
    fragments: usize,
    is_lost: bool,
}

impl Attacker {
    fn connect(server: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let stream = TcpStream::connect(server)?;
        // Its end is a reset, which leaves nothing behind.
        sockopt::set_socket_linger(&stream, Some(Duration::ZERO))?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            unsent: Vec::new(),
            fragments: 0,
            is_lost: false,
        })
    }

    /// Connects and asks for a WebSocket; does not wait for the answer.
    fn open(server: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let mut attacker = Self::connect(server)?;
        attacker.stream.write_all(live::REQUEST)?;
        Ok(attacker)
    }

    /// Sends what belongs to a stroke, as far as the server takes it.
    fn flood(&mut self, abuse: Abuse) {
        if self.unsent.is_empty() {
            match abuse {
                Abuse::Pings => self.unsent = frame(0x89, b"ping").repeat(FRAMES),
                Abuse::SlowReaders => {
                    self.unsent = frame(0x82, &[b'x'; MESSAGE_BYTES]).repeat(MESSAGES);
                }
                Abuse::EmptyFragments => self.add_fragments(b""),
                _ => self.add_fragments(b"x"),
            }
        }
        if abuse != Abuse::SlowReaders {
            self.ignore_input();
        }
        match self.stream.write(&self.unsent) {
            Ok(bytes) => _ = self.unsent.drain(..bytes),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_lost = true,
        }
    }

    fn add_fragments(&mut self, payload: &[u8]) {
        for _ in 0..FRAMES {
            let opcode = if self.fragments == 0 { 0x02 } else { 0x00 };
            self.fragments = (self.fragments + 1) % FRAGMENTS;
            let fin = if self.fragments == 0 { 0x80 } else { 0x00 };
            self.unsent.extend(frame(fin | opcode, payload));
        }
    }

    fn ignore_input(&mut self) {
        let mut ignored = [0; 64 << 10];
        while let Ok(1..) = self.stream.read(&mut ignored) {}
    }
}

/// Returns a frame as a client sends it, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        bytes @ 0..=125 => frame.push(0x80 | bytes as u8),
        bytes => {
            frame.push(0x80 | 126);
            frame.extend((bytes as u16).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}
