//! Any blocks, for clients that receive some of them, and other messages in between.
#![no_main]

use core::time::Duration;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use linerate_proto::{
    Engine, Opcode, Role,
    deflate::{Agreement, Context, Deflate, Lockstep, ThreadPool},
    frame,
};
use linerate_testkit::{Cuts, Seen, TestEndpoint, feed};

/// A client, with the end of the last block that it received and the bytes before it that it holds.
struct Client {
    engine: Engine<TestEndpoint>,
    end: u64,
    held: u64,
}

impl Client {
    fn new() -> Self {
        let context = Context {
            window_bits: Lockstep::WINDOW_BITS,
            takeover: true,
        };
        let agreement = Agreement {
            sending: context,
            receiving: context,
        };
        let engine = Engine::new(TestEndpoint(Role::Client), Arc::default(), Duration::ZERO);
        Self {
            engine: engine.with_deflate(agreement, &Deflate::default(), &ThreadPool),
            end: 0,
            held: 0,
        }
    }

    fn receive(&mut self, block: &[u8], stream: &mut Lockstep, positions: (u64, u64)) {
        if self.end != positions.0 {
            self.held = 0;
        }
        let mut wire = Vec::new();
        stream.compress(block, self.held, &ThreadPool, &mut wire);
        self.held += positions.1 - positions.0;
        self.end = positions.1;
        let seen = feed(&mut self.engine, &wire, Cuts::Whole).seen;
        assert!(
            seen == plain(block),
            "received something other than was sent"
        );
    }
}

/// Returns the messages of a block.
fn plain(block: &[u8]) -> Vec<Seen> {
    let endpoint = TestEndpoint(Role::Client);
    let mut engine = Engine::new(endpoint, Arc::default(), Duration::ZERO);
    feed(&mut engine, block, Cuts::Whole).seen
}

// Each message begins with its length, how often it is repeated, and which of the clients receive
// it: the low four bits select those that receive the block, the high four bits those that receive
// the same as another compressed message before it. The total length chooses the level.
fuzz_target!(|data: &[u8]| {
    let mut options = Deflate::default();
    options.level = 1 + (data.len() % 9) as u8;
    options.message_bytes_min = 0;
    let mut stream = Lockstep::new(&options);
    let mut clients = [(); 4].map(|()| Client::new());
    let mut rest = data;
    while let [length, times, who, messages @ ..] = rest {
        let (message, behind) = messages.split_at(usize::from(*length).min(messages.len()));
        rest = behind;
        let mut block = Vec::new();
        frame::append(&mut block, Opcode::Binary, message);
        let repeated = message.repeat(usize::from(*times));
        frame::append(&mut block, Opcode::Binary, &repeated);
        for (number, client) in clients.iter_mut().enumerate() {
            let mut other = Lockstep::new(&options);
            if who >> (4 + number) & 1 == 1
                && let Some(positions) = other.append(&block)
            {
                client.end = u64::MAX;
                client.receive(&block, &mut other, (positions.start, positions.end));
                client.end = u64::MAX;
            }
        }
        let Some(positions) = stream.append(&block) else {
            continue;
        };
        for (number, client) in clients.iter_mut().enumerate() {
            if who >> number & 1 == 1 {
                client.receive(&block, &mut stream, (positions.start, positions.end));
            }
        }
    }
});
