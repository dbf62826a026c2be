//! Incoming connections.

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

/// Maximum number of connections that start before the open ones have their turn; each takes about
/// 10 µs.
const ACCEPTS_MAX: usize = 8;

/// Approximate limit on connections that io_uring has accepted and that have not started. While
/// there are this many, further ones wait in the listener.
const ARRIVALS_MAX: usize = 64;

impl Worker {
    /// Handles an event of the listener: starts or accepts connections.
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

    /// Starts some of the connections that io_uring has accepted. io_uring accepts all that are
    /// waiting, and starting all of them at once would delay the open connections.
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

    /// Accepts waiting connections.
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

    /// Resumes accepting after a shortage.
    pub(super) fn resume_accepting(&mut self) -> io::Result<()> {
        match self.accept_due.take() {
            Some(_) => self.watch_listener(),
            None => Ok(()),
        }
    }

    /// Stops accepting for a tick, or until a connection ends. The listener remains ready, so that
    /// watching it would only spin.
    fn wait_for_files(&mut self) -> io::Result<()> {
        self.accept_due = Some(tick_after(self.core.now));
        self.watch_listener()
    }

    /// Watches the listener, but only while the worker can start further connections.
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

    /// Starts an accepted connection.
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

    /// Returns the stage of a connection before the first byte of its request.
    pub(super) fn opening(&self) -> Stage {
        let Core { shared, now, .. } = &self.core;
        let limits = shared.options.handshake;
        Stage::Opening(Box::new(Opening {
            reader: RequestReader::new(limits),
            due: *now + limits.time_max,
        }))
    }

    /// Adds a connection; returns its key.
    ///
    /// # Errors
    /// If the driver cannot add the socket. The error contains the stage that was passed in.
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
