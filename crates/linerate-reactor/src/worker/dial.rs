//! Outbound connections.

use std::{io, mem, net::SocketAddr, sync::Arc};

use linerate_proto::{Role, handshake::Negotiated};

use super::Worker;
use crate::{
    ConnectError, Opened,
    connection::Stage,
    driver::{Interest, socket},
    outbound::{Answer, Attempt, Pending},
    turn::Turn,
};

impl Worker {
    /// Begins the attempts whose turn it is. Attempts that are requested meanwhile have to wait,
    /// because an attempt that fails immediately may be repeated immediately.
    pub(super) fn dial(&mut self) {
        let max = self.core.shared.options.attempts_max;
        for _ in 0..self.core.dialer.wake(self.core.now) {
            let Some(pending) = self.core.dialer.next(max) else {
                break;
            };
            match pending.destination.addresses().cloned() {
                Some(addresses) => self.attempt(pending, addresses),
                None => self.look_up(pending),
            }
        }
    }

    /// Continues an attempt whose name has been looked up.
    pub(super) fn take_answer(&mut self, answer: Answer) {
        let Some(pending) = self.core.dialer.answered(answer.number) else {
            return;
        };
        match answer.found {
            Ok(addresses) => self.attempt(pending, addresses),
            Err(error) => self.report(pending, ConnectError::Lookup(error)),
        }
    }

    /// Adds an attempt that another thread has requested.
    pub(super) fn take_pending(&mut self, pending: Pending) {
        if self.core.dialer.is_shut {
            self.report(pending, ConnectError::ShutDown);
        } else {
            self.core.dialer.push(pending, self.core.now);
        }
    }

    /// Cancels an attempt that has begun; the caller settles the connection.
    pub(super) fn give_up(&mut self, key: usize, error: ConnectError) {
        let connection = &mut self.connections[key];
        if let Stage::Connecting(attempt) = &mut connection.stage {
            attempt.failure = Some(error);
            connection.lost = true;
        }
    }

    /// Cancels all attempts that have not begun, and begins no more.
    pub(super) fn stop_dialing(&mut self) {
        self.core.dialer.is_shut = true;
        while let Some(pending) = self.core.dialer.give_up() {
            self.report(pending, ConnectError::ShutDown);
        }
    }

    /// Continues once the network connection has been established or has failed.
    pub(super) fn take_connected(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        let outcome = socket::take_error(&connection.socket);
        if let Err(error) = outcome {
            return self.try_next(key, error);
        }
        connection.connecting = false;
        self.begin_request(key);
        self.settle(key);
    }

    /// Handles input of the opening handshake; returns how many bytes belonged to it.
    pub(super) fn take_response(&mut self, key: usize, input: &[u8]) -> usize {
        let connection = &mut self.connections[key];
        let Stage::Connecting(attempt) = &mut connection.stage else {
            return 0;
        };
        match attempt.handshake.handle_input(input) {
            Ok(None) => input.len(),
            Ok(Some((response, head_bytes))) => {
                self.open_outbound(key, &response);
                head_bytes
            }
            Err(error) => {
                self.give_up(key, ConnectError::Handshake(error));
                input.len()
            }
        }
    }

    /// Tells the handler that an attempt has ended, and why.
    pub(super) fn end_attempt(&mut self, attempt: Attempt, is_end_of_stream: bool) {
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

    fn look_up(&mut self, pending: Pending) {
        let core = &mut self.core;
        let Some(name) = pending.destination.name() else {
            return;
        };
        let number = core.dialer.number();
        let shared = &core.shared;
        match shared.resolver.look_up(shared, core.number, number, name) {
            Ok(()) => core.dialer.await_lookup(number, pending),
            Err(error) => self.report(pending, ConnectError::Lookup(error)),
        }
    }

    fn attempt(&mut self, pending: Pending, addresses: Arc<[SocketAddr]>) {
        let core = &mut self.core;
        let limits = core.shared.options.handshake;
        let time_max = pending.destination.time_max().unwrap_or(limits.time_max);
        core.dialer.under_way += 1;
        let handshake = pending.destination.handshake().with_limits(limits);
        #[cfg(feature = "deflate")]
        let handshake = match core.shared.options.deflate {
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
        self.end_attempt(*attempt, false);
    }

    fn try_address(
        &mut self,
        address: SocketAddr,
        attempt: Box<Attempt>,
    ) -> Result<(), (Box<Attempt>, io::Error)> {
        let core = &mut self.core;
        let turn = core.dialer.number();
        let source = attempt.pending.destination.source(address, turn);
        let socket = match socket::connect(address, source) {
            Ok(socket) => socket,
            Err(error) => return Err((attempt, error)),
        };
        let stage = Stage::Connecting(attempt);
        match self.enter(socket, stage, Role::Client, Interest::WRITE) {
            Ok(key) => {
                self.connections[key].connecting = true;
                self.set_alarm(key);
                Ok(())
            }
            Err((Stage::Connecting(attempt), error)) => Err((attempt, error)),
            Err((_, error)) => unreachable!("another stage came back: {error}"),
        }
    }

    /// Closes the socket of an attempt and continues with the next address.
    pub(super) fn try_next(&mut self, key: usize, error: io::Error) {
        let Some(connection) = self.connections.remove(key) else {
            return;
        };
        if connection.alarm != 0 {
            self.wheel.remove(connection.alarm, key as u32);
        }
        let token = connection.id.token();
        self.core
            .driver
            .close(connection.socket, token, &connection.watch);
        if let Stage::Connecting(mut attempt) = connection.stage {
            attempt.failure = Some(ConnectError::Network(error));
            self.try_addresses(attempt);
        }
    }

    fn open_outbound(&mut self, key: usize, response: &Negotiated) {
        let stage = &mut self.connections[key].stage;
        // A placeholder; `open` sets the stage below.
        let Stage::Connecting(attempt) = mem::replace(stage, Stage::Refused { due: 0 }) else {
            return;
        };
        self.core.dialer.under_way -= 1;
        let opened = Opened::Connected {
            destination: &attempt.pending.destination,
            response,
        };
        self.begin(key);
        #[cfg(feature = "deflate")]
        self.compress(key, response.deflate());
        self.open(key, attempt.pending.route, opened);
    }

    /// Tells the handler that a connection could not be opened.
    fn report(&mut self, pending: Pending, error: ConnectError) {
        self.core.count_closed();
        let Pending { destination, route } = pending;
        let handler = &mut self.routes.handlers[usize::from(route)];
        let core = &mut self.core;
        handler.failed(&mut Turn { core, route }, &destination, error);
    }
}
