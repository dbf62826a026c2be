//! The connections of a worker, from their first event to their end.

use std::{io, sync::Arc};

use linerate_proto::{CloseCode, Role, engine::Timeout};

use super::{
    connections::Connections, dial::Dial, handshakes::Handshakes, input::Input, parts::Parts,
    request, settle::settle, tls,
};
use crate::{
    adoption::Adoption,
    connection::{Connection, Stage, id::Slot},
    core::{Core, events::LocalEvent},
    driver::{
        event::{Event, EventKind, Interest},
        socket,
    },
    handler::Opened,
    outbound::error::ConnectError,
    platform::Socket,
    reactor::Reactor,
    route::routes::Routes,
    tls::{Tls, adopted::TlsConnection, outcome::Outcome},
    wheel::{Tick, tick_at},
};

/// Maximum number of deadlines that are handled before connections have their turn again. Thousands
/// of connections that opened together are due together, and each may take system calls of 10 µs.
const DEADLINES_MAX: usize = 8;

/// The connections of a worker, and everything that serving them needs.
///
/// Its methods are of four kinds: adding a connection, handling what happens to one, settling and
/// ending it, and ending all of them.
pub(crate) struct Service {
    pub(crate) parts: Parts,
    pub(crate) connections: Connections,
    input: Input,
    /// True if a connection has ended since [`take_freed`](Self::take_freed) was last called.
    has_freed: bool,
}

impl Service {
    pub(super) fn new(number: u16, reactor: Arc<Reactor>, routes: Routes) -> io::Result<Self> {
        Ok(Self {
            parts: Parts {
                core: Core::new(number, reactor)?,
                routes,
                handshakes: Handshakes::default(),
            },
            connections: Connections::new(),
            input: Input::new(),
            has_freed: false,
        })
    }

    /// Starts an accepted connection.
    pub(super) fn start(&mut self, socket: Socket) {
        let Parts {
            core, handshakes, ..
        } = &mut self.parts;
        let config = core.reactor.tls.as_ref();
        let Ok(tls) = config.map(Tls::server).transpose() else {
            return;
        };
        let stage = Handshakes::begin(core);
        let added = self
            .connections
            .add(core, socket, stage, Role::Server, Interest::READ);
        let Ok(key) = added else {
            return;
        };
        let connection = &mut self.connections[key];
        connection.tls = tls;
        if !core.reactor.count_accepted() {
            handshakes.refuse_overload(core, connection);
        }
        self.settle(key);
    }

    /// Takes over a connection that another server has accepted and that has been counted.
    pub(super) fn adopt(&mut self, adoption: Adoption) {
        let path = adoption.path.as_deref();
        let path = path.unwrap_or(adoption.request.path());
        let route = self.parts.routes.find(path);
        // An error means that there is no connection, whose peer cannot be told.
        _ = self.adopt_on(route, adoption);
    }

    /// Like [`adopt`](Self::adopt), with the handler of `route`; returns the slot of the
    /// connection, which may have ended already.
    ///
    /// # Errors
    /// If the connection cannot be watched, or the reactor is shutting down.
    pub(crate) fn adopt_on(&mut self, route: Option<u16>, adoption: Adoption) -> io::Result<Slot> {
        let stage = Handshakes::begin(&self.parts.core);
        let key = self.add_adopted(adoption.socket, stage)?;
        let Parts {
            core,
            routes,
            handshakes,
        } = &mut self.parts;
        let connection = &mut self.connections[key];
        let (slot, request) = (connection.slot, &adoption.request);
        let (mut input, mut outcome) = (adoption.input, Outcome::Continues);
        if let Some(tls) = adoption.tls {
            let plaintext;
            (plaintext, outcome) = continue_tls(core, connection, tls);
            input.extend_from_slice(&plaintext);
        }
        match (adoption.answer, route) {
            (None, route) => handshakes.answer(core, routes, connection, route, request),
            (Some(answer), Some(route)) => {
                connection.engine = core.engine_after(answer);
                routes.open(core, connection, route, Opened::Accepted(request));
            }
            (Some(_), None) => connection.lost = true,
        }
        if let Stage::Open { .. } = connection.stage {
            self.input
                .handle_adopted(&mut self.parts, connection, &mut input, outcome);
        }
        self.settle(key);
        Ok(slot)
    }

    /// Takes over a connection on which another server has read a request, to stream the response.
    /// Returns the slot of the connection, which may have ended already.
    ///
    /// # Errors
    /// If the connection cannot be watched, or the reactor is shutting down.
    pub(crate) fn adopt_stream(
        &mut self,
        socket: Socket,
        tls: Option<TlsConnection>,
    ) -> io::Result<Slot> {
        let key = self.add_adopted(socket, Stage::Streaming { due: 0 })?;
        let connection = &mut self.connections[key];
        let slot = connection.slot;
        if let Some(tls) = tls {
            let (_, outcome) = continue_tls(&mut self.parts.core, connection, tls);
            self.input
                .handle_adopted(&mut self.parts, connection, &mut [], outcome);
            if let Some(tls) = &mut connection.tls {
                tls.forget_handshake();
            }
        }
        self.settle(key);
        Ok(slot)
    }

    /// Adds a connection that another server has accepted and that has been counted; returns its
    /// key.
    fn add_adopted(&mut self, socket: Socket, stage: Stage) -> io::Result<usize> {
        let core = &mut self.parts.core;
        let added = socket::prepare(&socket).and_then(|()| {
            if core.is_shutting_down {
                return Err(io::ErrorKind::NotConnected.into());
            }
            self.connections
                .add(core, socket, stage, Role::Server, Interest::READ)
                .map_err(|(_, error)| error)
        });
        if added.is_err() {
            core.reactor.count_closed();
        }
        added
    }

    /// Returns access to the parts that opening outbound connections needs.
    pub(super) const fn dial(&mut self) -> Dial<'_> {
        Dial {
            core: &mut self.parts.core,
            routes: &mut self.parts.routes,
            connections: &mut self.connections,
        }
    }

    /// Starts a turn, in which time stands still.
    pub(super) fn begin_turn(&mut self) {
        self.parts.core.begin_turn();
        self.input.has_unread = false;
    }

    /// Handles an event of a socket.
    ///
    /// # Errors
    /// If the driver failed.
    #[inline]
    pub(super) fn handle_event(&mut self, event: Event) -> io::Result<()> {
        if let EventKind::Failed(error) = event.kind {
            return Err(error);
        }
        if let Some(key) = self.connections.find(event.token) {
            let connection = &mut self.connections[key];
            if event.is_over {
                connection.watch.input_is_over();
            }
            if connection.connecting {
                self.handle_connected(key);
            } else {
                self.handle(key, event.kind);
            }
        }
        Ok(())
    }

    /// Handles some of the input of the connection that has waited the longest.
    pub(super) fn handle_deferred(&mut self) {
        if let Some(token) = self.input.pop_deferred()
            && let Some(key) = self.connections.find(token)
        {
            self.connections[key].held.set_deferred(false);
            self.settle(key);
        }
    }

    /// Handles deadlines that have passed.
    pub(super) fn handle_deadlines(&mut self) {
        let now = tick_at(self.parts.core.now);
        for _ in 0..DEADLINES_MAX {
            let Some(key) = self.parts.core.deadlines.pop(now) else {
                break;
            };
            self.connections[key].alarm = 0;
            self.handle_deadline(key, now);
        }
    }

    /// Resumes the input of a connection, if it still exists.
    pub(crate) fn resume(&mut self, slot: Slot) {
        if let Some(key) = self.connections.find(slot.token()) {
            self.connections[key].paused = false;
            self.settle(key);
        }
    }

    /// Settles a connection, if it still exists.
    pub(crate) fn settle_slot(&mut self, slot: Slot) {
        if let Some(key) = self.connections.find(slot.token()) {
            self.settle(key);
        }
    }

    /// Writes the output that callbacks have left and updates everything that depends on the state
    /// of the connection. Ends the connection if it is over.
    pub(crate) fn settle(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if settle(&mut self.input, &mut self.parts, connection) {
            self.end(key);
        }
    }

    /// Returns whether a connection has ended since this was last called.
    pub(super) const fn take_freed(&mut self) -> bool {
        std::mem::replace(&mut self.has_freed, false)
    }

    /// Returns whether something is to be done at once.
    pub(super) fn has_work(&self) -> bool {
        let core = &self.parts.core;
        self.input.has_deferred()
            || self.input.has_unread
            || core.deadlines.is_behind()
            || !core.commands.is_empty()
            || core.dialer.is_ready(core.reactor.options.attempts_max)
    }

    /// Returns whether something is to be done later, even if nothing happens until then.
    pub(super) fn has_deadlines(&self) -> bool {
        let core = &self.parts.core;
        !core.deadlines.is_empty() || core.dialer.has_delayed()
    }

    /// Starts to close all connections, and opens no more.
    pub(super) fn close_all(&mut self) {
        self.parts.core.is_shutting_down = true;
        self.dial().cancel_pending();
        for key in self.connections.keys() {
            let connection = &mut self.connections[key];
            match connection.stage {
                Stage::Open { .. } => {
                    // The reason is within the length limit, and there is no other error.
                    let reason = match connection.role() {
                        Role::Client => "client shutting down",
                        Role::Server => "server shutting down",
                    };
                    let now = self.parts.core.now;
                    _ = connection.engine.close(CloseCode::GOING_AWAY, reason, now);
                    // Shutting down does not wait for a handler that has paused the input.
                    connection.paused = false;
                }
                Stage::Connecting(_) => request::cancel(connection, ConnectError::ShutDown),
                Stage::Opening(_) | Stage::Streaming { .. } => connection.lost = true,
                Stage::Refused { .. } => {}
            }
            self.settle(key);
        }
    }

    /// Ends all connections at once.
    pub(super) fn drop_all(&mut self) {
        for key in self.connections.keys() {
            self.end(key);
        }
    }

    fn handle(&mut self, key: usize, kind: EventKind) {
        let connection = &mut self.connections[key];
        match kind {
            EventKind::Ready { read, write, lost } => {
                self.handle_ready(key, read, write, lost);
            }
            EventKind::Input(mut input) => {
                let continues = connection.partial.is_some();
                connection.watch.learn(input.len(), continues);
                self.input.handle(&mut self.parts, connection, &mut input);
            }
            EventKind::End => connection.ended = true,
            EventKind::Lost => connection.lost = true,
            EventKind::Unsent(bytes, sent) => {
                self.parts.core.io.keep_unsent(connection, bytes, sent);
            }
            EventKind::Connection(_)
            | EventKind::Failed(_)
            | EventKind::Nothing
            | EventKind::Shortage => {}
        }
        self.settle(key);
    }

    fn handle_ready(&mut self, key: usize, read: bool, write: bool, lost: bool) {
        let Self {
            parts,
            connections,
            input,
            ..
        } = self;
        let connection = &mut connections[key];
        if write && !connection.backlog.is_empty() {
            parts.core.io.write_backlog(connection);
            if connection.backlog.is_empty() {
                end_congestion(parts, connection);
                input.handle_held(parts, connection);
            }
        }
        if lost && !connection.wanted().read {
            connection.lost = true;
        } else if read && !connection.watch.is_receiving() {
            input.read(parts, connection);
        }
    }

    /// Continues once the network connection has been established or has failed.
    fn handle_connected(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if let Err(error) = socket::take_error(&connection.socket) {
            return self.dial().try_next(key, error);
        }
        connection.connecting = false;
        tls::start_client(&mut self.parts, connection);
        self.settle(key);
    }

    /// Checks the deadlines of one connection.
    fn handle_deadline(&mut self, key: usize, now: Tick) {
        let Parts {
            core,
            handshakes,
            routes,
        } = &mut self.parts;
        let connection = &mut self.connections[key];
        if connection.backlog.stall_due().is_some_and(|due| now >= due) {
            socket::reset_on_close(&connection.socket);
            connection.lost = true;
        }
        if connection.message_due != 0 && now >= connection.message_due {
            connection.message_due = 0;
            // While the input is stopped, the peer cannot complete the message.
            if !connection.is_stopped() {
                routes.message_late(core, connection);
            }
        }
        match &connection.stage {
            Stage::Connecting(attempt) if core.now >= attempt.due => {
                let time_max = attempt.time_max;
                request::cancel(connection, ConnectError::TimedOut { time_max });
            }
            Stage::Connecting(attempt)
                if connection.connecting && core.now >= attempt.address_due =>
            {
                return self.dial().try_next(key, io::ErrorKind::TimedOut.into());
            }
            Stage::Opening(opening) if core.now >= opening.due => {
                handshakes.refuse_late(core, connection);
            }
            Stage::Refused { due } | Stage::Streaming { due } if *due != 0 && now >= *due => {
                // A slow reader of a page gets the rest from the kernel.
                socket::limit_unsent(&connection.socket, core.reactor.options.write_timeout);
                connection.lost = true;
            }
            Stage::Open { .. } if connection.engine_has_deadline() => {
                match connection.engine.handle_timeout(core.now) {
                    // A keepalive that failed has queued our Close frame.
                    Ok(()) | Err(Timeout::Keepalive(_)) => {}
                    Err(_) => connection.lost = true,
                }
            }
            _ => {}
        }
        self.settle(key);
    }

    /// Ends a connection: tells the handler and releases the connection's resources.
    fn end(&mut self, key: usize) {
        let Parts {
            core,
            routes,
            handshakes,
        } = &mut self.parts;
        let Some(mut connection) = self.connections.remove(core, key) else {
            return;
        };
        match connection.stage {
            Stage::Open { .. } => {
                core.mailbox().record_closed(connection.slot);
                let closed = connection.engine.handle_eof();
                routes.close(core, &mut connection, closed);
                core.topics.unsubscribe_all(connection.slot.index);
                core.reactor.count_closed();
            }
            Stage::Refused { .. } => handshakes.end_refusal(),
            Stage::Streaming { .. } => {
                core.events.push(LocalEvent::Closed {
                    connection: core.id(connection.slot),
                    closed: connection.engine.handle_eof(),
                });
                core.reactor.count_closed();
            }
            Stage::Opening(_) => core.reactor.count_closed(),
            Stage::Connecting(_) => {}
        }
        let has_ended = connection.ended;
        let stage = core.io.close(connection);
        self.has_freed = true;
        if let Stage::Connecting(attempt) = stage {
            self.dial().end(*attempt, has_ended);
        }
    }
}

/// Ends congestion and tells the handler that the backlog has been written.
fn end_congestion(Parts { core, routes, .. }: &mut Parts, connection: &mut Connection) {
    connection.congested = false;
    if std::mem::take(&mut connection.congestion_reported) {
        core.mailbox().record_congested(connection.slot, false);
    }
    match connection.stage {
        Stage::Streaming { .. } => core.events.push(LocalEvent::Drained {
            connection: core.id(connection.slot),
        }),
        _ => routes.drain(core, connection),
    }
}

/// Continues the TLS connection that another server has begun. Returns the plaintext that it has
/// not read, and how the stream from the peer continues after it.
fn continue_tls(
    core: &mut Core,
    connection: &mut Connection,
    tls: TlsConnection,
) -> (Vec<u8>, Outcome) {
    let adopted = tls.into_adopted();
    connection.tls = Some(adopted.tls);
    if !adopted.unsent.is_empty() {
        core.io.sealed.push(adopted.unsent);
        core.io.flush(connection, &[], &[]);
    }
    (adopted.plaintext, adopted.outcome)
}
