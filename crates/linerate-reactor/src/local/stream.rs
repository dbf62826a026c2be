//! A stream of a local reactor, as its owner uses it.

use std::fmt;

use bytes::Bytes;

use super::connection::{COPIED_BYTES_MAX, discard_unsent, limit_cork};
use crate::{
    connection::{Connection, Stage},
    core::Core,
    wheel::tick_after,
    worker::service::Service,
};

/// A stream of a [`LocalReactor`](super::LocalReactor): sends bytes, and ends.
///
/// Output is corked: it is written by [`flush`](Self::flush), when another connection is used, or
/// at the next turn.
pub struct LocalStream<'a> {
    service: &'a mut Service,
    key: usize,
}

impl<'a> LocalStream<'a> {
    pub(super) const fn new(service: &'a mut Service, key: usize) -> Self {
        Self { service, key }
    }

    /// Sends a copy of `bytes`. Has no effect once the stream has been [ended](Self::end).
    pub fn send(&mut self, bytes: &[u8]) {
        let (core, connection) = self.parts();
        if connection.is_open() {
            core.io.cork.bytes.extend_from_slice(bytes);
            limit_cork(&mut core.io, connection);
        }
    }

    /// Sends `bytes`. Long ones are not copied: what the kernel does not accept waits in the shared
    /// memory, and can be [discarded](Self::discard_unsent) as long as nothing of them is written.
    /// Has no effect once the stream has been [ended](Self::end).
    pub fn send_shared(&mut self, bytes: &Bytes) {
        let (core, connection) = self.parts();
        if bytes.len() < COPIED_BYTES_MAX {
            self.send(bytes);
        } else if connection.is_open() {
            core.io.flush_shared(connection, bytes);
        }
    }

    /// Ends the stream after everything that was sent. The peer has
    /// [`Config::close_timeout`](crate::Config::close_timeout) to read it and to close the
    /// connection.
    pub fn end(&mut self) {
        let (core, connection) = self.parts();
        if connection.is_open() {
            let due = core.now + core.reactor.config.close_timeout;
            connection.stage = Stage::Streaming {
                due: tick_after(due),
            };
        }
    }

    /// Discards what was sent by [`send_shared`](Self::send_shared) in long pieces of which nothing
    /// has been written. Other output remains.
    ///
    /// On an encrypted connection, no record can be left out. If output waits there, the connection
    /// is reset.
    pub fn discard_unsent(&mut self) {
        let (core, connection) = self.parts();
        discard_unsent(&mut core.io, connection);
    }

    /// Writes the output.
    pub fn flush(self) {
        self.service.settle(self.key);
    }

    fn parts(&mut self) -> (&mut Core, &mut Connection) {
        let Service {
            parts, connections, ..
        } = &mut *self.service;
        (&mut parts.core, &mut connections[self.key])
    }
}

impl fmt::Debug for LocalStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalStream")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
