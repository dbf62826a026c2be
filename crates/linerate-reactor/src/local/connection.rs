//! A connection of a local reactor, as its owner uses it.

use std::fmt;

use bytes::Bytes;
#[cfg(feature = "deflate")]
use linerate_proto::deflate;
use linerate_proto::{CloseCode, SendError, engine::Message};

use crate::{
    connection::Connection,
    core::{Core, io::Io},
    driver::socket,
    worker::service::Service,
};

/// Shared bytes of this many bytes or more are written without a copy. Shorter ones are copied
/// into the cork buffer, because that costs less than one more slice for the kernel.
pub(super) const COPIED_BYTES_MAX: usize = 4 << 10;

/// The cork buffer is flushed when it holds this many bytes.
const CORK_BYTES_MAX: usize = 32 << 10;

/// The state of a connection of a [`LocalReactor`](super::LocalReactor).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct LocalStatus {
    /// The number of bytes of output that the kernel has not accepted yet.
    ///
    /// If this is not 0 after a flush, [`LocalEvent::Drained`](crate::LocalEvent) or
    /// [`LocalEvent::Closed`](crate::LocalEvent) follows.
    pub backlog_bytes: usize,
    /// The memory that unfinished messages and unprocessed input use, in bytes.
    pub input_bytes: usize,
    /// True if messages can be sent.
    pub is_open: bool,
}

/// A connection of a [`LocalReactor`](super::LocalReactor): sends, closes, pauses.
///
/// Output is corked: it is written by [`flush`](Self::flush), when another connection is used, or
/// at the next turn.
pub struct LocalConnection<'a> {
    service: &'a mut Service,
    key: usize,
}

impl<'a> LocalConnection<'a> {
    pub(super) const fn new(service: &'a mut Service, key: usize) -> Self {
        Self { service, key }
    }

    /// Sends a message, compressed if that was negotiated and pays.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send(&mut self, message: Message<'_>) -> Result<(), SendError> {
        let (core, connection) = self.parts();
        let cork = &mut core.io.cork.bytes;
        connection
            .engine
            .send(cork, message.kind(), message.as_bytes())?;
        limit_cork(&mut core.io, connection);
        Ok(())
    }

    /// Sends whole, unmasked frames, as they are. Long ones are not copied: what the kernel does
    /// not accept waits in the shared memory.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send_frames(&mut self, frames: &Bytes) -> Result<(), SendError> {
        let (core, connection) = self.parts();
        if !connection.is_open() {
            return Err(SendError::Closed);
        }
        if frames.len() < COPIED_BYTES_MAX {
            core.io.cork.bytes.extend_from_slice(frames);
            limit_cork(&mut core.io, connection);
        } else {
            core.io.flush_shared(connection, frames);
        }
        Ok(())
    }

    /// Sends a message that was compressed for many connections, in the form that suits this one.
    ///
    /// # Errors
    /// If the connection is closing.
    #[cfg(feature = "deflate")]
    pub fn send_prepared(&mut self, message: &deflate::Prepared) -> Result<(), SendError> {
        let (core, connection) = self.parts();
        let cork = &mut core.io.cork.bytes;
        connection.engine.send_prepared(cork, message)?;
        limit_cork(&mut core.io, connection);
        Ok(())
    }

    /// Starts the closing handshake, after everything that was sent.
    ///
    /// # Errors
    /// If `reason` has more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) -> Result<(), SendError> {
        let (core, connection) = self.parts();
        connection.engine.close(code, reason, core.now)
    }

    /// Discards [shared frames](Self::send_frames) of which nothing has been written. Only a Close
    /// frame should be sent afterwards: a peer that inflates messages cannot inflate later ones.
    ///
    /// On an encrypted connection, no record can be left out. If output waits there, all of it is
    /// discarded and the connection ends without a Close frame.
    pub fn discard_unsent(&mut self) {
        let (core, connection) = self.parts();
        discard_unsent(&mut core.io, connection);
    }

    /// Pauses the input; see [`Context::pause`](crate::Context::pause).
    pub fn pause(&mut self) {
        let (core, connection) = self.parts();
        core.events.forget_stopped(connection.slot);
        connection.paused = true;
    }

    /// Resumes the input.
    pub fn resume(&mut self) {
        self.parts().1.paused = false;
    }

    /// Writes the output.
    pub fn flush(self) {
        self.service.settle(self.key);
    }

    /// Returns how we compress messages, or `None` if we do not compress them.
    #[cfg(feature = "deflate")]
    pub fn compression(&self) -> Option<deflate::Context> {
        self.service.connections[self.key].engine.compression()
    }

    fn parts(&mut self) -> (&mut Core, &mut Connection) {
        let Service {
            parts, connections, ..
        } = &mut *self.service;
        (&mut parts.core, &mut connections[self.key])
    }
}

impl fmt::Debug for LocalConnection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalConnection")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

pub(super) fn limit_cork(io: &mut Io, connection: &mut Connection) {
    if io.cork.bytes.len() >= CORK_BYTES_MAX {
        io.flush(connection, &[], &[]);
    }
}

/// Discards shared output of which nothing has been written. An encrypted connection with output
/// that waits is reset instead.
pub(super) fn discard_unsent(io: &mut Io, connection: &mut Connection) {
    // Writing nothing would fail if the stream to the peer was ended.
    if !io.is_flushed() {
        io.flush(connection, &[], &[]);
    }
    if connection.tls.is_some() && !connection.backlog.is_empty() {
        socket::reset_on_close(&connection.socket);
        connection.lost = true;
        return;
    }
    let memory = &mut io.memory;
    connection
        .backlog
        .drop_frames(&mut memory.pool, &mut memory.queues);
    memory.used.charge(connection);
}
