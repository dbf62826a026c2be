//! Sockets in mio on Unix: registered by their descriptors.

use std::{io, os::fd::AsRawFd};

use mio::{Interest, Token, unix::SourceFd};

use crate::{driver::event::Source, platform::Socket};

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

    /// Closes a socket. The kernel stops watching it when its last descriptor is closed, but other
    /// workers and the program that opened the listener may still have descriptors of a listener.
    pub(super) fn close(&mut self, source: Source, socket: Socket, _: Token) {
        if source == Source::Listener {
            // This cannot fail: the socket was added.
            _ = self.0.deregister(&mut SourceFd(&socket.as_raw_fd()));
        }
    }
}
