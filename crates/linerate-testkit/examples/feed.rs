//! Feeds one large masked message to a server's engine in reads of a given size.
//!
//! `cargo run --release -p linerate-testkit --example feed -- text|binary MESSAGE_BYTES READ_BYTES`
//!
//! It is made for counting instructions: under `valgrind --tool=callgrind
//! --toggle-collect='*counted*'`, the figures cover what the engine does with each read, but
//! neither the reads themselves nor the creation of the message. The example is here and not with
//! the engine because building the engine's examples builds everything that its tests need.

use core::time::Duration;
use std::{env, error::Error, sync::Arc};

use linerate_proto::{Client, Config, Engine, Event, MaskKey, Server, engine::MessageKind};

/// A worker's read buffer.
const BUFFER_BYTES: usize = 64 << 10;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [kind, message_bytes, read_bytes] = &arguments[..] else {
        return Err("usage: feed text|binary MESSAGE_BYTES READ_BYTES".into());
    };
    let kind = match kind.as_str() {
        "text" => MessageKind::Text,
        "binary" => MessageKind::Binary,
        _ => return Err(format!("unknown kind {kind}; use text or binary").into()),
    };
    let (message_bytes, read_bytes) = (message_bytes.parse()?, read_bytes.parse()?);
    if !(1..=BUFFER_BYTES).contains(&read_bytes) {
        return Err(format!("READ_BYTES must be from 1 to {BUFFER_BYTES}").into());
    }
    let mut wire = message(kind, message_bytes)?;
    let mut config = Config::default();
    config.limits.message_bytes_max = u64::MAX;
    let mut engine = Engine::new(Server, Arc::new(config), Duration::ZERO);
    let received = counted(&mut engine, &mut wire, read_bytes);
    if received != message_bytes {
        return Err(format!("received {received} of {message_bytes} bytes").into());
    }
    println!("{received}");
    Ok(())
}

/// Returns the frame of a message as a client sends it. The text has lines in several alphabets.
fn message(kind: MessageKind, bytes: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let line = "GET /index.html 200 ιστοσελίδα 網頁 🙂\n";
    let mut payload = line.repeat(bytes / line.len()).into_bytes();
    payload.resize(bytes, b'.');
    let mut client = Engine::new(
        Client::new(|| MaskKey([0x37, 0xFA, 0x21, 0x3D])),
        Arc::default(),
        Duration::ZERO,
    );
    let mut wire = Vec::new();
    client.send(&mut wire, kind, &payload)?;
    Ok(wire)
}

/// Handles the reads and returns the number of payload bytes they contained. Stops counting after
/// an error.
#[inline(never)]
fn counted(engine: &mut Engine<Server>, wire: &mut [u8], read_bytes: usize) -> usize {
    let mut received = 0;
    for input in wire.chunks_mut(read_bytes) {
        let mut events = engine.handle_input(input, Duration::ZERO);
        while let Some(Ok(event)) = events.next() {
            received += match event {
                Event::Text(text) => text.len(),
                Event::Binary(bytes) => bytes.len(),
                Event::Chunk(chunk) => chunk.bytes.len(),
                _ => 0,
            };
        }
    }
    received
}
