//! The path of input from the socket to the handlers.

use std::collections::VecDeque;

use super::{parts::Parts, request, tls};
use crate::{
    connection::{Connection, Stage, memory::Memory},
    driver::socket::{self, Received},
    tls::outcome::{Outcome, Plaintext},
};

/// The size of a read in bytes: enough for many small messages or a good part of a large one, and
/// still in the cache.
const READ_BYTES: usize = 256 << 10;

/// The size of a read in bytes while a long message arrives: fewer, larger system calls then matter
/// more than the cache.
const LONG_READ_BYTES: usize = 1 << 20;

/// Maximum number of reads of one connection before others have their turn.
const READS_MAX: usize = 4;

/// The input of a worker's connections: the read buffer, and the queue of connections whose input
/// waits for its turn.
pub(super) struct Input {
    buffer: Vec<u8>,
    /// Tokens of the connections whose held input waits; some may no longer exist.
    deferred: VecDeque<u64>,
    /// True if a socket was not read to its end since this was last reset.
    pub(super) has_unread: bool,
}

impl Input {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; LONG_READ_BYTES],
            deferred: VecDeque::new(),
            has_unread: false,
        }
    }

    /// Reads and handles the input that has arrived, up to a limit.
    pub(super) fn read(&mut self, parts: &mut Parts, connection: &mut Connection) {
        let mut buffer = std::mem::take(&mut self.buffer);
        for number in 1..=READS_MAX {
            if !connection.wanted().read {
                break;
            }
            let continues = connection.partial.is_some();
            let bytes_max = if continues {
                LONG_READ_BYTES
            } else {
                READ_BYTES
            };
            match socket::receive(&connection.socket, &mut buffer[..bytes_max]) {
                Received::Bytes(bytes) => {
                    connection.watch.learn(bytes, continues);
                    self.handle(parts, connection, &mut buffer[..bytes]);
                    if bytes < bytes_max {
                        break;
                    }
                    self.has_unread |= number == READS_MAX;
                }
                Received::End => connection.ended = true,
                Received::Nothing => break,
                Received::Lost => connection.lost = true,
            }
        }
        self.buffer = buffer;
    }

    /// Handles the bytes that a read returned.
    #[inline]
    pub(super) fn handle(
        &mut self,
        parts: &mut Parts,
        connection: &mut Connection,
        input: &mut [u8],
    ) {
        parts.core.io.traffic.bytes_received += input.len() as u64;
        if connection.tls.is_some() {
            self.handle_records(parts, connection, input);
        } else {
            self.handle_plaintext(parts, connection, input);
        }
    }

    /// Handles the plaintext that another server has received, and how the stream continues after
    /// it.
    pub(super) fn handle_adopted(
        &mut self,
        parts: &mut Parts,
        connection: &mut Connection,
        plaintext: &mut [u8],
        outcome: Outcome,
    ) {
        parts.core.io.traffic.bytes_received += plaintext.len() as u64;
        self.handle_plaintext(parts, connection, plaintext);
        handle_outcome(parts, connection, outcome);
    }

    /// Handles the input that was kept.
    #[inline]
    pub(super) fn handle_held(&mut self, parts: &mut Parts, connection: &mut Connection) {
        if !connection.held.is_empty() && !connection.held.is_deferred() && !connection.is_stopped()
        {
            self.process_held(parts, connection);
        }
    }

    /// Returns the token of the connection whose held input has waited the longest.
    pub(super) fn pop_deferred(&mut self) -> Option<u64> {
        self.deferred.pop_front()
    }

    /// Returns whether input waits for its turn.
    pub(super) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Handles plaintext, after all input that arrived before it. Input that must not be processed
    /// yet is kept.
    fn handle_plaintext(
        &mut self,
        parts: &mut Parts,
        connection: &mut Connection,
        input: &mut [u8],
    ) {
        self.handle_held(parts, connection);
        let Parts {
            core,
            routes,
            handshakes,
        } = parts;
        let mut done = 0;
        if connection.held.is_empty() && !connection.is_stopped() {
            done = match connection.stage {
                Stage::Open { .. } | Stage::Refused { .. } | Stage::Streaming { .. } => 0,
                Stage::Connecting(_) => request::handle_input(core, routes, connection, input),
                Stage::Opening(_) => handshakes.handle_input(core, routes, connection, input),
            };
            done += routes.input(core, connection, &mut input[done..]);
        }
        let Memory { pool, held, .. } = &mut core.io.memory;
        connection.held.append(&input[done..], pool, held);
        self.defer_held(connection);
    }

    /// Decrypts input and handles the plaintext.
    fn handle_records(&mut self, parts: &mut Parts, connection: &mut Connection, input: &mut [u8]) {
        let mut at = 0;
        while at < input.len() {
            let io = &mut parts.core.io;
            let is_refused = matches!(connection.stage, Stage::Refused { .. });
            let Some(tls) = &mut connection.tls else {
                return;
            };
            if connection.ended || connection.lost || is_refused {
                // Anything after the end of the stream is ignored (RFC 8446 §6.1), as is anything
                // after a refused request.
                return;
            }
            let was_open = tls.is_open();
            let taken = tls.handle_input(&mut input[at..], &mut io.sealed, &mut io.memory.pool);
            if tls.is_open() && !was_open {
                request::send(&mut parts.core, connection);
            }
            match taken.plaintext {
                Plaintext::InPlace(bytes) => {
                    self.handle_plaintext(parts, connection, &mut input[at..at + bytes]);
                }
                Plaintext::Joined(mut record, bytes) => {
                    self.handle_plaintext(parts, connection, &mut record[..bytes]);
                    parts.core.io.memory.pool.give(record);
                }
            }
            at += taken.bytes;
            handle_outcome(parts, connection, taken.outcome);
        }
    }

    fn process_held(&mut self, parts: &mut Parts, connection: &mut Connection) {
        let Parts { core, routes, .. } = parts;
        let mut input = std::mem::take(&mut connection.held);
        let done = routes.input(core, connection, input.unprocessed_mut());
        let Memory { pool, held, .. } = &mut core.io.memory;
        input.skip(done, pool, held);
        connection.held = input;
        self.defer_held(connection);
    }

    /// Appends a connection to the queue if it has input left and is not stopped. It has its turn
    /// after all connections that are already in the queue.
    fn defer_held(&mut self, connection: &mut Connection) {
        let continues = !connection.held.is_empty() && !connection.is_stopped();
        if continues && !connection.held.is_deferred() {
            connection.held.set_deferred(true);
            self.deferred.push_back(connection.slot.token());
        }
    }
}

/// Handles how the stream from the peer continues after what was received.
fn handle_outcome(parts: &mut Parts, connection: &mut Connection, outcome: Outcome) {
    match outcome {
        Outcome::Continues => {}
        Outcome::Ended => connection.ended = true,
        Outcome::Failed(failed) => tls::fail(parts, connection, failed),
    }
}
