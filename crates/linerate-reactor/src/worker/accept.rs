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
    connection::{Connection, Opening, Stage, side::Side},
    driver::{
        Event, Interest, Source, What,
        socket::{self, Accepted},
    },
    tls::Tls,
    worker::wheel::tick_after,
};

/// Connections that start before the open ones have their turn; each takes some 10 µs.
const ACCEPTS_MAX: usize = 8;

/// Connections that io_uring may have accepted and that have not started, about: while there are so
/// many, the rest waits in the listener.
const ARRIVALS_MAX: usize = 64;

impl Worker {
    /// Takes connections, or learns that some wait.
    pub(super) fn handle_listener(&mut self, event: Event) -> io::Result<()> {
        if let Some(listener) = &mut self.listener
            && event.is_over
        {
            listener.watch.input_is_over();
        }
        match event.what {
            What::Connection(socket) if self.listener.is_some() => self.arrivals.push_back(socket),
            What::Failed(error) => return Err(error),
            What::Ready { .. } => return self.accept(),
            What::Shortage => return self.wait_for_files(),
            _ => {}
        }
        self.watch_listener()
    }

    /// Starts with some of the connections that io_uring has accepted: it takes all that wait, and
    /// open connections would wait for them.
    pub(super) fn take_arrivals(&mut self) -> io::Result<()> {
        if self.arrivals.is_empty() {
            return Ok(());
        }
        let count = self.arrivals.len().min(ACCEPTS_MAX);
        for _ in 0..count {
            if let Some(socket) = self.arrivals.pop_front() {
                self.start(socket);
            }
        }
        match self.arrivals.len() {
            0 => self.watch_listener(),
            _ => Ok(()),
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
            Some(_) => self.watch_listener(),
            None => Ok(()),
        }
    }

    /// Stops accepting for a tick, or until a connection ends. The listener stays ready; to be told
    /// so again and again would be to spin.
    fn wait_for_files(&mut self) -> io::Result<()> {
        self.accept_due = Some(tick_after(self.core.now));
        self.watch_listener()
    }

    /// Sees to it that the worker learns of connections exactly if it can start with them.
    fn watch_listener(&mut self) -> io::Result<()> {
        let Some(listener) = &mut self.listener else {
            return Ok(());
        };
        let has_room = self.arrivals.len() < ARRIVALS_MAX;
        let interest = match has_room && self.accept_due.is_none() {
            true => Interest::READ,
            false => Interest::NONE,
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
        let stage = self.opening();
        let Ok(key) = self.enter(socket, stage, Role::Server, Interest::READ) else {
            return;
        };
        self.connections[key].tls = tls;
        let shared = &self.core.shared;
        let open = shared.counters.connections.fetch_add(1, Ordering::Relaxed);
        if open >= shared.options.connections_max {
            self.refuse_overload(key);
        }
        self.settle(key);
    }

    /// Returns the stage before the first byte of a request.
    pub(super) fn opening(&self) -> Stage {
        let Core { shared, now, .. } = &self.core;
        let limits = shared.options.handshake;
        Stage::Opening(Box::new(Opening {
            reader: RequestReader::new(limits),
            due: *now + limits.time_max,
        }))
    }

    /// Enters a connection; returns its key.
    ///
    /// # Errors
    /// The driver does not take it; with the stage that it was to have.
    pub(super) fn enter(
        &mut self,
        socket: OwnedFd,
        stage: Stage,
        role: Role,
        interest: Interest,
    ) -> Result<usize, (Stage, io::Error)> {
        let core = &mut self.core;
        let id = ConnectionId {
            worker: core.number,
            index: self.connections.next_index() as u32,
            serial: self.next_serial,
        };
        self.next_serial = (self.next_serial + 1) & SERIAL_MAX;
        let driver = &mut core.driver;
        let watch = match driver.add(Source::Socket, socket.as_fd(), id.token(), interest) {
            Ok(watch) => watch,
            Err(error) => return Err((stage, error)),
        };
        let engine = Engine::new(Side(role), core.shared.config.clone(), core.now);
        let connection = Connection::new(socket, id, stage, engine, watch);
        Ok(self.connections.insert(connection))
    }
}
