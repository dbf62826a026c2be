//! Sockets in mio on Unix: registered by their descriptors.

use std::{io, os::fd::AsRawFd};

use mio::{Interest, Token, unix::SourceFd};

use crate::{
    driver::{Watch, event::Source},
    platform::Socket,
};

/// The sockets that mio watches.
pub(super) struct Registry(mio::Registry);

impl Registry {
    pub(super) fn new(registry: &mio::Registry) -> io::Result<Self> {
        registry.try_clone().map(Self)
    }

    pub(super) fn add(
        &mut self,
        _: Source,
        socket: &Socket,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let descriptor = socket.as_raw_fd();
        self.0.register(&mut SourceFd(&descriptor), token, interest)
    }

    pub(super) fn modify(
        &mut self,
        socket: &Socket,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let descriptor = socket.as_raw_fd();
        let mut source = SourceFd(&descriptor);
        self.0.reregister(&mut source, token, interest)
    }

    pub(super) fn close(&mut self, watch: &Watch, socket: Socket, _: Token) {
        if watch.outlives_close() {
            // This cannot fail: the socket was added.
            _ = self.release(&socket);
        }
    }

    /// Stops watching a socket, which stays open.
    pub(super) fn release(&mut self, socket: &Socket) -> io::Result<()> {
        self.0.deregister(&mut SourceFd(&socket.as_raw_fd()))
    }
}
