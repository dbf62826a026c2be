//! Sockets in mio on Windows. mio watches only sockets of its own types, so each socket is watched
//! through a duplicate of its handle.

use std::{collections::HashMap, io};

use mio::{
    Interest, Token,
    event::Source as Watched,
    net::{TcpListener, TcpStream},
};

use crate::{
    driver::{Watch, event::Source},
    platform::Socket,
};

/// The sockets that mio watches.
pub(super) struct Registry {
    registry: mio::Registry,
    duplicates: HashMap<Token, Box<dyn Watched>>,
}

impl Registry {
    pub(super) fn new(registry: &mio::Registry) -> io::Result<Self> {
        Ok(Self {
            registry: registry.try_clone()?,
            duplicates: HashMap::new(),
        })
    }

    pub(super) fn add(
        &mut self,
        source: Source,
        socket: &Socket,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        let duplicate = socket.try_clone()?;
        let mut duplicate: Box<dyn Watched> = match source {
            Source::Listener => Box::new(TcpListener::from_std(duplicate.into())),
            Source::Socket => Box::new(TcpStream::from_std(duplicate.into())),
        };
        self.registry.register(&mut duplicate, token, interest)?;
        self.duplicates.insert(token, duplicate);
        Ok(())
    }

    pub(super) fn modify(
        &mut self,
        _: &Socket,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        match self.duplicates.get_mut(&token) {
            Some(duplicate) => self.registry.reregister(duplicate, token, interest),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Closes a socket. Its connection ends with its last handle.
    pub(super) fn close(&mut self, _: &Watch, socket: Socket, token: Token) {
        self.duplicates.remove(&token);
        drop(socket);
    }
}
