//! A connection whose answers are compared as they arrive.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_harness::socket::Socket;
use linerate_proto::Opcode;

use super::answers::Answers;
use super::message::Expected;
use super::opening::OpenConnection;
use super::{LoadError, Wire};

/// A socket, the bytes that wait to be sent, and the check of the answers.
#[derive(Debug)]
pub(crate) struct Link {
    socket: Socket,
    pub(crate) answers: Answers,
    /// Whole frames. `unsent[sent..]` waits for room in the socket.
    unsent: Vec<u8>,
    sent: usize,
}

impl Link {
    /// Takes over an open connection. All answers must have the given `opcode`.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has already sent a message.
    pub(crate) fn new(
        opened: OpenConnection,
        wire: Wire,
        opcode: Opcode,
    ) -> Result<Self, LoadError> {
        let mut link = Self {
            socket: opened.socket,
            answers: Answers::new(wire, opcode),
            unsent: Vec::new(),
            sent: 0,
        };
        link.answers
            .handle_input(&opened.leftover, &mut link.unsent, |_| None)?;
        Ok(link)
    }

    /// Queues whole frames and sends as many bytes as the socket accepts.
    pub(crate) fn send(&mut self, frames: &[u8]) -> Result<(), LoadError> {
        self.unsent.extend_from_slice(frames);
        self.flush().map(|_| ())
    }

    /// Sends queued bytes. Returns whether the queue is empty.
    pub(crate) fn flush(&mut self) -> Result<bool, LoadError> {
        self.socket.flush().map_err(LoadError::of_socket)?;
        while self.sent < self.unsent.len() {
            let bytes = self.unsent.split_at(self.sent).1;
            match write(&mut self.socket, bytes)? {
                0 => return Ok(false),
                bytes => self.sent += bytes,
            }
        }
        self.unsent.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Sends the start of `bytes`, bypassing the queue. Returns the number of bytes that the socket
    /// accepted. The caller must ensure that this does not interrupt a queued frame, and that no
    /// queued frame interrupts `bytes`.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, LoadError> {
        write(&mut self.socket, bytes)
    }

    /// Reads everything that has arrived and passes it to [`Answers::handle_input`]. Returns
    /// whether anything had arrived.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has ended, or if the input differs from what is expected.
    pub(crate) fn receive<'e>(
        &mut self,
        buffer: &mut [u8],
        expected: impl Fn(u64) -> Option<Expected<'e>>,
    ) -> Result<bool, LoadError> {
        let mut any = false;
        loop {
            let bytes = match self.socket.read(buffer) {
                Ok(0) => return Err(LoadError::Ended),
                Ok(bytes) => bytes,
                Err(error) if is_wait(&error) => return Ok(any),
                Err(error) => return Err(LoadError::of_socket(error)),
            };
            any = true;
            self.answers
                .handle_input(&buffer[..bytes], &mut self.unsent, &expected)?;
            if self.socket.drained() {
                return Ok(true);
            }
        }
    }

    /// Resets the connection, so that neither end keeps any state of it.
    pub(crate) fn abandon(self) -> Result<(), LoadError> {
        self.socket.abandon().map_err(LoadError::of_socket)
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn write(socket: &mut Socket, bytes: &[u8]) -> Result<usize, LoadError> {
    match socket.write(bytes) {
        Ok(bytes) => Ok(bytes),
        Err(error) if is_wait(&error) => Ok(0),
        Err(error) => Err(LoadError::of_socket(error)),
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
    )
}
