//! Accepting connections.

use std::{collections::VecDeque, io};

use super::service::Service;
use crate::{
    driver::{
        Driver, Watch,
        event::{Event, EventKind, Interest, Source, TOKEN_MAX},
        socket::{self, Accepted},
    },
    platform::Socket,
    wheel::{Tick, tick_after, tick_at},
};

/// The token of the listener; no connection has this index.
pub(super) const LISTENER: u64 = TOKEN_MAX;

/// Maximum number of connections that start before the open ones have their turn; each takes about
/// 10 µs.
const ACCEPTS_MAX: usize = 8;

/// Approximate limit on connections that io_uring has accepted and that have not started. While
/// there are this many, further ones wait in the listener.
const ARRIVALS_MAX: usize = 64;

/// The listener of a worker, and the connections that it has accepted and not started.
pub(super) struct Acceptor {
    /// `None` in a connector, and once a server shuts down.
    listener: Option<Listener>,
    /// When to resume after the process ran out of file descriptors. A connection that ends makes
    /// it due at once.
    resume_due: Option<Tick>,
    /// Accepted connections that wait for their turn to start.
    arrivals: VecDeque<Socket>,
}

/// The socket on which connections arrive.
struct Listener {
    socket: Socket,
    watch: Watch,
}

impl Acceptor {
    pub(super) fn new(socket: Option<Socket>, driver: &mut Driver) -> io::Result<Self> {
        let listener = match socket {
            Some(socket) => Some(Listener {
                watch: driver.add(Source::Listener, &socket, LISTENER, Interest::READ)?,
                socket,
            }),
            None => None,
        };
        Ok(Self {
            listener,
            resume_due: None,
            arrivals: VecDeque::new(),
        })
    }

    /// Handles an event of the listener: starts connections, or keeps them until it is their turn.
    ///
    /// # Errors
    /// If the listener or the driver failed.
    pub(super) fn handle_event(&mut self, event: Event, service: &mut Service) -> io::Result<()> {
        if let Some(listener) = &mut self.listener
            && event.is_over
        {
            listener.watch.input_is_over();
        }
        match event.kind {
            EventKind::Connection(socket) if self.listener.is_some() => {
                self.arrivals.push_back(socket)
            }
            EventKind::Failed(error) => return Err(error),
            EventKind::Ready { .. } => self.accept(service)?,
            EventKind::Shortage => self.wait_for_files(service),
            _ => {}
        }
        self.watch(service)
    }

    /// Starts some of the connections that io_uring has accepted. io_uring accepts all that are
    /// waiting, and starting all of them at once would delay the open connections.
    ///
    /// # Errors
    /// If the driver failed.
    pub(super) fn start_arrivals(&mut self, service: &mut Service) -> io::Result<()> {
        if self.arrivals.is_empty() {
            return Ok(());
        }
        let count = self.arrivals.len().min(ACCEPTS_MAX);
        for _ in 0..count {
            if let Some(socket) = self.arrivals.pop_front() {
                service.start(socket);
            }
        }
        match self.arrivals.len() {
            0 => self.watch(service),
            _ => Ok(()),
        }
    }

    /// Resumes accepting after a shortage, once a tick has passed or a connection has ended.
    ///
    /// # Errors
    /// If the driver failed.
    pub(super) fn resume_if_due(&mut self, service: &mut Service) -> io::Result<()> {
        let now = tick_at(service.parts.core.now);
        let has_freed = service.take_freed();
        if self.resume_due.is_some_and(|due| has_freed || now >= due) {
            self.resume_due = None;
            return self.watch(service);
        }
        Ok(())
    }

    /// Stops accepting for good.
    pub(super) fn close(&mut self, driver: &mut Driver) {
        if let Some(Listener { socket, watch }) = self.listener.take() {
            driver.close(socket, LISTENER, &watch);
        }
        self.resume_due = None;
        self.arrivals.clear();
    }

    /// Returns whether accepted connections wait for their turn.
    pub(super) fn has_arrivals(&self) -> bool {
        !self.arrivals.is_empty()
    }

    /// Returns whether accepting resumes later.
    pub(super) const fn is_waiting(&self) -> bool {
        self.resume_due.is_some()
    }

    /// Accepts waiting connections.
    fn accept(&mut self, service: &mut Service) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = &self.listener else {
                break;
            };
            match socket::accept(&listener.socket) {
                Ok(Accepted::Connection(socket)) => service.start(socket),
                Ok(Accepted::Nothing) => break,
                Ok(Accepted::Shortage) => {
                    self.wait_for_files(service);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Stops accepting for a tick, or until a connection ends. The listener remains ready, so that
    /// watching it would only spin.
    fn wait_for_files(&mut self, service: &mut Service) {
        self.resume_due = Some(tick_after(service.parts.core.now));
        // Only connections that end from now on free a descriptor.
        service.take_freed();
    }

    /// Watches the listener, but only while the worker can start further connections.
    fn watch(&mut self, service: &mut Service) -> io::Result<()> {
        let Some(listener) = &mut self.listener else {
            return Ok(());
        };
        let has_room = self.arrivals.len() < ARRIVALS_MAX;
        let interest = match has_room && self.resume_due.is_none() {
            true => Interest::READ,
            false => Interest::NONE,
        };
        let socket = &listener.socket;
        let driver = &mut service.parts.core.io.driver;
        driver.update(socket, LISTENER, &mut listener.watch, interest)
    }
}
