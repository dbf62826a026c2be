//! A client and a server, connected by queues in memory, with a virtual clock.

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{
    Config, Engine, Role,
    engine::{Closed, Timeout},
};

use crate::{
    TestEndpoint,
    feed::{Record, feed_piece},
};

/// One end of a [`Pair`].
#[derive(Debug)]
pub struct Side {
    /// The engine.
    pub engine: Engine<TestEndpoint>,
    /// The bytes that it has written and the other side has not received. The `send_*` methods
    /// append to it.
    pub outbox: Vec<u8>,
    /// What its application saw. `output` has the bytes that the engine wrote by itself.
    pub record: Record,
    /// The deadlines that passed, in order.
    pub timeouts: Vec<Timeout>,
    /// How the connection ended.
    pub closed: Option<Closed>,
}

impl Side {
    fn new(role: Role, config: &Arc<Config>) -> Self {
        Self {
            engine: Engine::new(TestEndpoint(role), Arc::clone(config), Duration::ZERO),
            outbox: Vec::new(),
            record: Record::default(),
            timeouts: Vec::new(),
            closed: None,
        }
    }

    /// Moves due control frames to the outbox.
    fn transmit(&mut self) {
        let start = self.outbox.len();
        self.engine.poll_transmit(&mut self.outbox);
        self.record.output.extend_from_slice(&self.outbox[start..]);
    }

    fn receive(&mut self, bytes: &[u8], now: Duration) {
        let start = self.record.output.len();
        feed_piece(&mut self.engine, bytes, now, &mut self.record);
        self.outbox.extend_from_slice(&self.record.output[start..]);
    }

    fn end(&mut self) {
        let closed = self.engine.handle_eof();
        self.closed.get_or_insert(closed);
    }
}

/// A connection with both of its ends.
///
/// Nothing happens by itself: [`drive`](Self::drive) carries bytes, and [`advance`](Self::advance)
/// lets time pass.
#[derive(Debug)]
pub struct Pair {
    /// The client's end.
    pub client: Side,
    /// The server's end.
    pub server: Side,
    now: Duration,
    read_bytes_max: usize,
}

impl Pair {
    /// Creates a pair whose opening handshake has just ended, at time 0.
    pub fn new(config: Config) -> Self {
        let config = Arc::new(config);
        Self {
            client: Side::new(Role::Client, &config),
            server: Side::new(Role::Server, &config),
            now: Duration::ZERO,
            read_bytes_max: usize::MAX,
        }
    }

    /// Limits each read to `bytes` bytes.
    #[must_use]
    pub fn with_read_bytes_max(mut self, bytes: usize) -> Self {
        self.read_bytes_max = bytes;
        self
    }

    /// Carries bytes both ways until neither side has more to send, then ends the stream if an
    /// engine requests it.
    pub fn drive(&mut self) {
        loop {
            self.client.transmit();
            self.server.transmit();
            if self.client.outbox.is_empty() && self.server.outbox.is_empty() {
                break;
            }
            // Take both first, so that bytes that cross on the way also cross here.
            let to_server = core::mem::take(&mut self.client.outbox);
            let to_client = core::mem::take(&mut self.server.outbox);
            for piece in to_server.chunks(self.read_bytes_max) {
                self.server.receive(piece, self.now);
            }
            for piece in to_client.chunks(self.read_bytes_max) {
                self.client.receive(piece, self.now);
            }
        }
        if self.client.engine.ends_stream() || self.server.engine.ends_stream() {
            self.cut();
        }
    }

    /// Ends the stream in both directions. Bytes on the way are lost.
    pub fn cut(&mut self) {
        self.client.end();
        self.server.end();
    }

    /// Lets time pass and notifies both engines.
    pub fn advance(&mut self, by: Duration) {
        self.now += by;
        for side in [&mut self.client, &mut self.server] {
            if let Err(timeout) = side.engine.handle_timeout(self.now) {
                side.timeouts.push(timeout);
            }
        }
    }

    /// Returns the current time of the virtual clock.
    pub const fn now(&self) -> Duration {
        self.now
    }
}
