//! The clients that behave well, and how long they wait for their answers.

use std::{
    error::Error,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

pub(crate) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

/// How many there are.
pub(crate) const CLIENTS: usize = 32;

/// The time between two messages, over all clients.
const INTERVAL: Duration = Duration::from_micros(250);

/// A client that is not answered for so long is not served.
const PATIENCE: Duration = Duration::from_secs(10);

/// A text of 16 bytes, masked with zeros.
const MESSAGE: &[u8] = b"\x81\x90\0\0\0\0how do you do???";

/// Clients that behave well.
pub(crate) struct Live(Vec<TcpStream>);

impl Live {
    pub(crate) fn open(server: SocketAddr) -> Result<Self, Box<dyn Error>> {
        let streams = (0..CLIENTS).map(|_| -> Result<TcpStream, Box<dyn Error>> {
            let mut stream = TcpStream::connect(server)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(REQUEST)?;
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                answer.extend(byte);
            }
            Ok(stream)
        });
        streams.collect::<Result<_, _>>().map(Self)
    }

    /// Sends messages at a steady rate, one client after the other, for so long; returns the 99th
    /// percentile of the time to the answer.
    ///
    /// A message that is late because an answer was counts from when it was due, so that one long
    /// wait counts as all the short ones that it has prevented.
    pub(crate) fn p99(&mut self, duration: Duration) -> Result<Duration, Box<dyn Error>> {
        let mut waits = Vec::new();
        let started = Instant::now();
        let mut due = started;
        while due < started + duration {
            for stream in &mut self.0 {
                let now = Instant::now();
                let sent = if now < due {
                    thread::sleep(due - now);
                    Instant::now()
                } else {
                    due
                };
                stream.write_all(MESSAGE)?;
                read_echo(stream)?;
                waits.push(sent.elapsed());
                due += INTERVAL;
            }
        }
        let place = waits.len() * 99 / 100;
        Ok(*waits.select_nth_unstable(place).1)
    }
}

/// Reads until the echo has come; answers Pings meanwhile.
fn read_echo(stream: &mut TcpStream) -> Result<(), Box<dyn Error>> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head)?;
        let mut payload = vec![0; usize::from(head[1])];
        stream.read_exact(&mut payload)?;
        match head[0] {
            0x81 => return Ok(()),
            0x89 => {
                let mut pong = vec![0x8A, 0x80 | head[1], 0, 0, 0, 0];
                pong.extend(payload);
                stream.write_all(&pong)?;
            }
            _ => return Err("the server has closed a connection of a live client".into()),
        }
    }
}
