//! Attempts to connect, from their turn to a socket or an error.

use std::{io, net::SocketAddr, sync::Arc};

use linerate_proto::Role;

use super::connections::Connections;
use crate::{
    connection::Stage,
    core::Core,
    driver::{event::Interest, socket},
    mailbox::LookupResult,
    outbound::{
        dialer::{Attempt, Pending},
        error::ConnectError,
    },
    route::routes::Routes,
};

/// The parts of a worker that opening outbound connections needs.
pub(super) struct Dial<'a> {
    pub(super) core: &'a mut Core,
    pub(super) routes: &'a mut Routes,
    pub(super) connections: &'a mut Connections,
}

impl Dial<'_> {
    /// Begins the attempts whose turn it is. Attempts that are requested meanwhile have to wait,
    /// because an attempt that fails immediately may be repeated immediately.
    pub(super) fn begin_attempts(&mut self) {
        let max = self.core.reactor.options.attempts_max;
        for _ in 0..self.core.dialer.wake(self.core.now) {
            let Some(pending) = self.core.dialer.next(max) else {
                break;
            };
            match pending.destination.addresses().cloned() {
                Some(addresses) => self.begin(pending, addresses),
                None => self.look_up(pending),
            }
        }
    }

    /// Adds an attempt that another thread has requested.
    pub(super) fn request(&mut self, pending: Pending) {
        if self.core.is_shutting_down {
            self.report(pending, ConnectError::ShutDown);
        } else {
            self.core.dialer.push(pending, self.core.now);
        }
    }

    /// Continues an attempt whose name has been looked up.
    pub(super) fn end_lookup(&mut self, result: LookupResult) {
        let Some(pending) = self.core.dialer.end_lookup(result.number) else {
            return;
        };
        match result.found {
            Ok(addresses) => self.begin(pending, addresses),
            Err(error) => self.report(pending, ConnectError::Lookup(error)),
        }
    }

    /// Closes the socket of an attempt and continues with the next address.
    pub(super) fn try_next(&mut self, key: usize, error: io::Error) {
        let Some(connection) = self.connections.remove(self.core, key) else {
            return;
        };
        if let Stage::Connecting(mut attempt) = self.core.io.close(connection) {
            attempt.failure = Some(ConnectError::Network(error));
            self.try_addresses(attempt);
        }
    }

    /// Tells the handler that an attempt has ended, and why.
    pub(super) fn end(&mut self, attempt: Attempt, is_end_of_stream: bool) {
        self.core.dialer.under_way -= 1;
        let Attempt {
            pending,
            handshake,
            failure,
            ..
        } = attempt;
        let error = failure.unwrap_or_else(|| match is_end_of_stream {
            true => ConnectError::Handshake(handshake.handle_eof()),
            false => ConnectError::Network(io::ErrorKind::ConnectionReset.into()),
        });
        self.report(pending, error);
    }

    /// Cancels all attempts that have not begun.
    pub(super) fn cancel_pending(&mut self) {
        while let Some(pending) = self.core.dialer.cancel() {
            self.report(pending, ConnectError::ShutDown);
        }
    }

    fn look_up(&mut self, pending: Pending) {
        let core = &mut *self.core;
        let Some(name) = pending.destination.name() else {
            return;
        };
        let number = core.dialer.number();
        let (resolver, mailboxes) = (&core.reactor.resolver, &core.reactor.mailboxes);
        match resolver.look_up(mailboxes, core.number, number, name) {
            Ok(()) => core.dialer.await_lookup(number, pending),
            Err(error) => self.report(pending, ConnectError::Lookup(error)),
        }
    }

    fn begin(&mut self, pending: Pending, addresses: Arc<[SocketAddr]>) {
        let core = &mut *self.core;
        let limits = core.reactor.options.handshake;
        let time_max = pending.destination.time_max().unwrap_or(limits.time_max);
        core.dialer.under_way += 1;
        let handshake = pending.destination.handshake().with_limits(limits);
        #[cfg(feature = "deflate")]
        let handshake = match core.reactor.options.deflate {
            Some(deflate) => handshake.with_deflate(deflate),
            None => handshake,
        };
        let attempt = Attempt {
            handshake,
            pending,
            addresses,
            next: 0,
            address_due: core.now,
            due: core.now.saturating_add(time_max),
            time_max,
            failure: None,
        };
        self.try_addresses(Box::new(attempt));
    }

    /// Tries the remaining addresses until one does not fail immediately.
    fn try_addresses(&mut self, mut attempt: Box<Attempt>) {
        while let Some(address) = attempt.addresses.get(attempt.next).copied() {
            // The remaining addresses share the remaining time, because one of them may not answer
            // at all.
            let left = (attempt.addresses.len() - attempt.next) as u32;
            let now = self.core.now;
            attempt.address_due = now + attempt.due.saturating_sub(now) / left;
            attempt.next += 1;
            match self.try_address(address, attempt) {
                Ok(()) => return,
                Err((same, error)) => {
                    attempt = same;
                    attempt.failure = Some(ConnectError::Network(error));
                }
            }
        }
        let none = || ConnectError::Lookup(io::ErrorKind::NotFound.into());
        attempt.failure.get_or_insert_with(none);
        self.end(*attempt, false);
    }

    fn try_address(
        &mut self,
        address: SocketAddr,
        attempt: Box<Attempt>,
    ) -> Result<(), (Box<Attempt>, io::Error)> {
        let Self {
            core, connections, ..
        } = self;
        let number = core.dialer.number();
        let source = attempt.pending.destination.source(address, number);
        let socket = match socket::connect(address, source) {
            Ok(socket) => socket,
            Err(error) => return Err((attempt, error)),
        };
        let stage = Stage::Connecting(attempt);
        match connections.add(core, socket, stage, Role::Client, Interest::WRITE) {
            Ok(key) => {
                let connection = &mut connections[key];
                connection.connecting = true;
                core.deadlines.schedule(connection);
                Ok(())
            }
            Err((Stage::Connecting(attempt), error)) => Err((attempt, error)),
            Err((_, error)) => unreachable!("another stage came back: {error}"),
        }
    }

    /// Tells the handler that a connection could not be opened.
    fn report(&mut self, pending: Pending, error: ConnectError) {
        self.routes.failed(self.core, pending, error);
    }
}
