//! The load: one thread with blocking sockets, and messages that are built before the clock starts.
//!
//! A connection sends a window of messages with one write and compares what comes back byte for
//! byte; then it is the next connection's turn. While the echo of one connection is awaited, the
//! windows of the others therefore wait at the server. Each connection alternates between two
//! windows that have no message in common, so that a stale or swapped echo is noticed.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use linerate_simd::mask;

use crate::process::Server;
use crate::scenario::{Kind, Scenario};

/// A server that is silent for this long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Largest size of the head of a response, in bytes.
const RESPONSE_BYTES_MAX: usize = 4 << 10;

/// The key is that of RFC 6455 §1.3, for which the answer is known.
const REQUEST: &[u8] =
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// How often and how long each contender is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) rounds: usize,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
}

/// The result of one contender in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) messages_per_second: f64,
    pub(crate) messages_per_cpu_second: f64,
}

/// Measures all servers in turn, once in each round. Returns a list of rounds for each server. Each
/// round begins with a different server.
pub(crate) fn measure_rounds(
    servers: &[Server],
    scenario: &Scenario,
    times: &Times,
) -> Vec<anyhow::Result<Vec<Measurement>>> {
    let mut results: Vec<anyhow::Result<Vec<Measurement>>> =
        servers.iter().map(|_| Ok(Vec::new())).collect();
    for round in 0..times.rounds {
        for turn in 0..servers.len() {
            let index = (round + turn) % servers.len();
            // A server that has failed once gets no more turns.
            if let Ok(measurements) = &mut results[index] {
                match measure(&servers[index], scenario, times) {
                    Ok(measurement) => measurements.push(measurement),
                    Err(error) => results[index] = Err(error),
                }
            }
        }
    }
    results
}

fn measure(server: &Server, scenario: &Scenario, times: &Times) -> anyhow::Result<Measurement> {
    let mut connections = (0..scenario.connections)
        .map(|number| Connection::open(server, scenario, number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    exchange(&mut connections, times.warm_up)?;
    let (start, cpu_start) = (Instant::now(), server.cpu_time()?);
    let windows = exchange(&mut connections, times.measured)?;
    let (elapsed, cpu) = (start.elapsed(), server.cpu_time()? - cpu_start);
    let messages = (windows * scenario.window) as f64;
    Ok(Measurement {
        messages_per_second: messages / elapsed.as_secs_f64(),
        messages_per_cpu_second: messages / cpu.as_secs_f64(),
    })
}

/// Exchanges windows for `time` and until nothing is in flight. Returns the number of windows.
fn exchange(connections: &mut [Connection], time: Duration) -> anyhow::Result<usize> {
    let start = Instant::now();
    let mut windows = 0;
    for connection in &mut *connections {
        connection.send()?;
    }
    while start.elapsed() < time {
        for connection in &mut *connections {
            connection.receive()?;
            connection.send()?;
        }
        windows += connections.len();
    }
    for connection in &mut *connections {
        connection.receive()?;
    }
    Ok(windows + connections.len())
}

/// A client's connection and the windows that it sends.
struct Connection {
    stream: TcpStream,
    windows: [Window; 2],
    /// Index of the window that is in flight or will be sent next.
    turn: usize,
    received: Vec<u8>,
}

impl Connection {
    fn open(server: &Server, scenario: &Scenario, number: usize) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        stream.set_write_timeout(Some(SILENCE_MAX))?;
        if server.contender.speaks_websocket() {
            shake_hands(&mut stream)?;
        }
        let windows = [2 * number, 2 * number + 1].map(|number| {
            let window = Window::new(scenario, number);
            if server.contender.speaks_websocket() {
                return window;
            }
            Window {
                echo: window.request.clone(),
                ..window
            }
        });
        let received = vec![0; windows[0].echo.len()];
        Ok(Self {
            stream,
            windows,
            turn: 0,
            received,
        })
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let request = &self.windows[self.turn].request;
        self.stream
            .write_all(request)
            .context("cannot send a window of messages")
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        self.stream
            .read_exact(&mut self.received)
            .context("cannot read the whole echo")?;
        ensure!(
            self.received == self.windows[self.turn].echo,
            "the echo differs from what was sent"
        );
        self.turn = 1 - self.turn;
        Ok(())
    }
}

/// The bytes of a window's frames, and of the frames that answer them.
struct Window {
    request: Vec<u8>,
    echo: Vec<u8>,
}

impl Window {
    /// Builds the messages of window `number`.
    fn new(scenario: &Scenario, number: usize) -> Self {
        let mut window = Self {
            request: Vec::new(),
            echo: Vec::new(),
        };
        for place in 0..scenario.window {
            let message = number * scenario.window + place;
            let payload = payload(scenario, message);
            // Successive keys share no byte pattern.
            let key = (message as u32 + 1).wrapping_mul(0x9E37_79B1).to_be_bytes();
            let mut masked = vec![0; payload.len()];
            mask::naive::copy(key, 0, &payload, &mut masked);
            push_header(&mut window.request, scenario.kind, 0x80, payload.len());
            window.request.extend(key);
            window.request.extend(masked);
            push_header(&mut window.echo, scenario.kind, 0, payload.len());
            window.echo.extend(payload);
        }
        window
    }
}

/// Builds a payload that begins with the message's number.
fn payload(scenario: &Scenario, message: usize) -> Vec<u8> {
    /// The pattern has characters of one, two, three and four bytes.
    const PATTERN: &str = r#"{"channel":"prices","offset":18723,"text":"Grüße, κόσμε 🍣"},"#;

    let len = scenario.payload_bytes;
    let mut payload = format!("{message:08x}");
    payload.push_str(&PATTERN.repeat(len / PATTERN.len() + 1));
    payload.truncate(payload.floor_char_boundary(len));
    payload.extend(std::iter::repeat_n('.', len - payload.len()));
    let mut payload = payload.into_bytes();
    if scenario.kind == Kind::Binary && len > 8 {
        // The payload must not be valid UTF-8.
        payload[8] = 0xff;
    }
    payload
}

/// Appends the part of a frame header that precedes the masking key (RFC 6455 §5.2).
fn push_header(frame: &mut Vec<u8>, kind: Kind, mask_bit: u8, len: usize) {
    frame.push(match kind {
        Kind::Binary => 0x82,
        Kind::Text => 0x81,
    });
    match len {
        0..=125 => frame.push(mask_bit | len as u8),
        126..=0xffff => {
            frame.push(mask_bit | 126);
            frame.extend((len as u16).to_be_bytes());
        }
        _ => {
            frame.push(mask_bit | 127);
            frame.extend((len as u64).to_be_bytes());
        }
    }
}

fn shake_hands(stream: &mut TcpStream) -> anyhow::Result<()> {
    stream.write_all(REQUEST)?;
    let mut head = Vec::new();
    // Reads byte by byte, so that no frame after the head is consumed.
    while !head.ends_with(b"\r\n\r\n") {
        ensure!(
            head.len() < RESPONSE_BYTES_MAX,
            "the head of the response is longer than {RESPONSE_BYTES_MAX} bytes"
        );
        let mut byte = [0];
        stream
            .read_exact(&mut byte)
            .context("cannot read the response")?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    ensure!(
        head.starts_with("HTTP/1.1 101") && head.contains(ACCEPT),
        "the handshake was refused"
    );
    Ok(())
}
