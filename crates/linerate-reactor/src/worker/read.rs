//! The path of input from the socket to the handlers.

use super::{LONG_READ_BYTES, READ_BYTES, Worker};
use crate::{
    connection::Stage,
    driver::socket::{self, Received},
};

/// Maximum number of reads of one connection before others have their turn.
const READS_MAX: usize = 4;

impl Worker {
    /// Reads and handles the input that has arrived, up to a limit.
    pub(super) fn read(&mut self, key: usize) {
        let mut buffer = std::mem::take(&mut self.read_buffer);
        for _ in 0..READS_MAX {
            let connection = &mut self.connections[key];
            if !connection.wanted().read {
                break;
            }
            let goes_on = connection.gather.is_some();
            let bytes_max = if goes_on { LONG_READ_BYTES } else { READ_BYTES };
            match socket::receive(&connection.socket, &mut buffer[..bytes_max]) {
                Received::Bytes(bytes) => {
                    connection.watch.learn(bytes, goes_on);
                    self.take_input(key, &mut buffer[..bytes]);
                    if bytes < bytes_max {
                        break;
                    }
                }
                Received::End => connection.ended = true,
                Received::Nothing => break,
                Received::Lost => connection.lost = true,
            }
        }
        self.read_buffer = buffer;
    }

    /// Handles the bytes that a read returned.
    #[inline]
    pub(super) fn take_input(&mut self, key: usize, input: &mut [u8]) {
        if self.connections[key].tls.is_some() {
            self.take_records(key, input);
        } else {
            self.take_plain(key, input);
        }
    }

    /// Handles plaintext, after all input that arrived before it. Input that must not be processed
    /// yet is kept.
    pub(super) fn take_plain(&mut self, key: usize, input: &mut [u8]) {
        self.take_held(key);
        let connection = &mut self.connections[key];
        let mut done = 0;
        if connection.held.is_empty() && !connection.is_stopped() {
            done = match connection.stage {
                Stage::Open { .. } | Stage::Refused { .. } => 0,
                Stage::Connecting(_) => self.take_response(key, input),
                Stage::Opening(_) => self.take_opening(key, input),
            };
            done += self.take_frames(key, &mut input[done..]);
        }
        let connection = &mut self.connections[key];
        connection.held.append(&input[done..], &mut self.core.pool);
        self.defer_held(key);
    }

    /// Handles frames; returns how many bytes have been processed. Afterwards, all output that
    /// refers to `input` has been written or copied.
    #[inline]
    pub(super) fn take_frames(&mut self, key: usize, input: &mut [u8]) -> usize {
        let connection = &mut self.connections[key];
        let Stage::Open { route, data } = connection.stage else {
            // Anything that a client sends after a refused request is ignored.
            return input.len();
        };
        let core = &mut self.core;
        let done = self.routes.handlers[usize::from(route)].input(data, core, connection, input);
        if core.output.has_splices() {
            core.flush(connection, input, &[]);
        }
        done
    }

    /// Handles the input that was kept.
    pub(super) fn take_held(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if connection.held.is_empty() || connection.held.is_deferred() || connection.is_stopped() {
            return;
        }
        let mut held = std::mem::take(&mut connection.held);
        let done = self.take_frames(key, held.rest_mut());
        held.skip(done, &mut self.core.pool);
        self.connections[key].held = held;
        self.defer_held(key);
    }

    /// Handles some of the input of the connection that has waited the longest.
    pub(super) fn take_deferred(&mut self) {
        if let Some(token) = self.deferred.pop_front()
            && let Some(key) = self.find(token)
        {
            self.connections[key].held.set_deferred(false);
            self.settle(key);
        }
    }

    /// Appends a connection to the queue if it has input left and is not stopped. It has its turn
    /// after all connections that are already in the queue.
    fn defer_held(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let goes_on = !connection.held.is_empty() && !connection.is_stopped();
        if goes_on && !connection.held.is_deferred() {
            connection.held.set_deferred(true);
            self.deferred.push_back(connection.id.token());
        }
    }
}
