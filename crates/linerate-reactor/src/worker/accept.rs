//! Connections that arrive.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::atomic::Ordering,
};

use linerate_proto::{Engine, Role, handshake::RequestReader};

use super::{Core, LISTENER, SERIAL_MAX, Worker};
use crate::{
    ConnectionId,
    connection::{Connection, Opening, Stage},
    driver::{Event, Interest, Source, What},
    side::Side,
    socket::{self, Accepted},
    tls::Tls,
    wheel::tick_after,
};

/// Connections accepted before the open ones have their turn.
const ACCEPTS_MAX: usize = 64;

impl Worker {
    /// Takes connections, or learns that some wait.
    pub(super) fn handle_listener(&mut self, event: Event) -> io::Result<()> {
        if let Some(listener) = &mut self.listener
            && event.is_over
        {
            listener.watch.input_is_over();
        }
        match event.what {
            What::Connection(socket) if self.listener.is_some() => self.start(socket),
            What::Failed(error) => return Err(error),
            What::Ready { .. } => return self.accept(),
            What::Shortage => return self.wait_for_files(),
            _ => {}
        }
        match self.accept_due {
            None => self.watch_listener(Interest::READ),
            Some(_) => Ok(()),
        }
    }

    /// Accepts connections that wait.
    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else {
                break;
            };
            match socket::accept(&listener.socket) {
                Ok(Accepted::Connection(socket)) => self.start(socket),
                Ok(Accepted::Nothing) => break,
                Ok(Accepted::Shortage) => return self.wait_for_files(),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Goes on accepting after a shortage.
    pub(super) fn resume_accepting(&mut self) -> io::Result<()> {
        match self.accept_due.take() {
            Some(_) => self.watch_listener(Interest::READ),
            None => Ok(()),
        }
    }

    /// Stops accepting for a tick, or until a connection ends. The listener stays ready; to be told
    /// so again and again would be to spin.
    fn wait_for_files(&mut self) -> io::Result<()> {
        self.accept_due = Some(tick_after(self.core.now));
        self.watch_listener(Interest::NONE)
    }

    fn watch_listener(&mut self, interest: Interest) -> io::Result<()> {
        let Some(listener) = &mut self.listener else {
            return Ok(());
        };
        let socket = listener.socket.as_fd();
        self.core
            .driver
            .update(socket, LISTENER, &mut listener.watch, interest)
    }

    /// Starts with a connection that was accepted.
    pub(super) fn start(&mut self, socket: OwnedFd) {
        let config = self.core.shared.tls.as_ref();
        let Ok(tls) = config.map(Tls::server).transpose() else {
            return;
        };
        let key = self.connections.next_index();
        let id = ConnectionId {
            worker: self.core.number,
            index: key as u32,
            serial: self.next_serial,
        };
        self.next_serial = (self.next_serial + 1) & SERIAL_MAX;
        let added =
            self.core
                .driver
                .add(Source::Socket, socket.as_fd(), id.token(), Interest::READ);
        let Ok(watch) = added else {
            return;
        };
        let Core { shared, now, .. } = &self.core;
        let open = shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        let time_max = shared.options.handshake.time_max;
        let stage = Stage::Opening(Box::new(Opening {
            reader: RequestReader::new(shared.options.handshake),
            due: *now + time_max,
        }));
        let engine = Engine::new(Side(Role::Server), shared.config.clone(), *now);
        let mut connection = Connection::new(socket, id, stage, engine, watch);
        connection.tls = tls;
        let is_overload = open >= shared.options.connections_max;
        self.connections.insert(connection);
        if is_overload {
            self.refuse_overload(key);
        }
        self.settle(key);
    }
}
