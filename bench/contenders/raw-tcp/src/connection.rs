//! A connection, and the output that the kernel has not yet accepted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::acknowledge::Counter;

/// A connection with more unsent output than this is closed, which happens only in a fan-out.
/// Messages may be up to 64 MiB long, and one of that size has to fit.
const UNSENT_BYTES_MAX: usize = 128 << 20;

/// A nonblocking connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: OwnedFd,
    /// Output that the kernel did not accept; almost always empty.
    unsent: Vec<u8>,
    /// How much of `unsent` the kernel has accepted since.
    sent: usize,
    /// True if epoll watches for writability.
    pub(crate) watched_for_room: bool,
    pub(crate) counter: Counter,
}

impl Connection {
    pub(crate) fn new(stream: OwnedFd) -> Self {
        Self {
            stream,
            unsent: Vec::new(),
            sent: 0,
            watched_for_room: false,
            counter: Counter::default(),
        }
    }

    /// Reads once. Returns `None` if there is nothing to read.
    ///
    /// # Errors
    ///
    /// The connection has ended in any way.
    pub(crate) fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        match recv(&self.stream, &mut *buffer, RecvFlags::empty()) {
            Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((len, _)) => Ok(Some(&buffer[..len])),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes `bytes`, and keeps what the kernel does not accept.
    ///
    /// # Errors
    ///
    /// The connection has ended, or too much would be kept.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        if self.unsent.is_empty() {
            rest = &rest[self.offer(rest)?..];
        }
        if self.unsent.len() - self.sent + rest.len() > UNSENT_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        self.unsent.extend_from_slice(rest);
        Ok(())
    }

    /// Writes the kept output.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub(crate) fn write_unsent(&mut self) -> io::Result<()> {
        self.sent += self.offer(&self.unsent[self.sent..])?;
        if self.sent == self.unsent.len() {
            self.unsent.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Returns whether output is waiting.
    pub(crate) fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// Returns how much of `bytes` the kernel accepted.
    fn offer(&self, bytes: &[u8]) -> io::Result<usize> {
        match send(&self.stream, bytes, SendFlags::NOSIGNAL) {
            Ok(len) => Ok(len),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
