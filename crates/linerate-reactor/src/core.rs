//! What all connections of a worker share.

mod deadlines;
pub(crate) mod events;
pub(crate) mod io;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::{Agreement, ThreadPool};
use linerate_proto::{Engine, Role};

use self::{deadlines::Deadlines, events::Events, io::Io};
use crate::{
    adoption::Answer,
    commands::{Commands, ConnectionHandle},
    connection::{
        Connection,
        endpoint::RuntimeRole,
        id::{ConnectionId, Slot},
    },
    mailbox::Mailbox,
    outbound::{
        destination::Destination,
        dialer::{Dialer, Pending},
        error::ConnectError,
    },
    reactor::Reactor,
    topics::{Topics, burst::Burst},
    wheel::tick_after,
};

/// The state that all connections of a worker share and that callbacks can use.
pub(crate) struct Core {
    /// The number of this worker.
    pub(crate) number: u16,
    pub(crate) reactor: Arc<Reactor>,
    started: Instant,
    /// The time since the worker started, updated once per turn.
    pub(crate) now: Duration,
    pub(crate) io: Io,
    pub(crate) deadlines: Deadlines,
    pub(crate) topics: Topics,
    /// Publications of this worker's connections that have not been delivered.
    pub(crate) burst: Burst,
    /// What callbacks have requested for connections other than their own.
    pub(crate) commands: Commands,
    pub(crate) dialer: Dialer,
    /// What the owner of a local reactor has not taken yet; nothing in other reactors.
    pub(crate) events: Events,
    /// How long a message may take to arrive.
    pub(crate) message_timeout: Option<Duration>,
    pub(crate) is_shutting_down: bool,
}

impl Core {
    /// Creates the state of the worker with this number.
    ///
    /// # Errors
    /// If the driver is not available.
    pub(crate) fn new(number: u16, reactor: Arc<Reactor>) -> std::io::Result<Self> {
        let mut core = Self {
            number,
            io: Io::new(reactor.clone())?,
            message_timeout: reactor.options.message_timeout,
            reactor,
            started: Instant::now(),
            now: Duration::ZERO,
            deadlines: Deadlines::new(),
            topics: Topics::default(),
            burst: Burst::default(),
            commands: Commands::default(),
            dialer: Dialer::default(),
            events: Events::default(),
            is_shutting_down: false,
        };
        core.set_now(Duration::ZERO);
        Ok(core)
    }

    /// Starts a turn, in which time stands still.
    pub(crate) fn begin_turn(&mut self) {
        self.set_now(self.elapsed());
    }

    /// Returns the time since the worker started, without waiting for the next turn.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns the mailbox of this worker.
    pub(crate) fn mailbox(&self) -> &Mailbox {
        &self.reactor.mailboxes[usize::from(self.number)]
    }

    /// Returns an engine for a connection in this role.
    pub(crate) fn engine(&self, role: Role) -> Engine<RuntimeRole> {
        Engine::new(RuntimeRole(role), self.reactor.config.clone(), self.now)
    }

    /// Returns the engine of a client's connection whose request another server has answered.
    pub(crate) fn engine_after(&self, answer: Answer) -> Engine<RuntimeRole> {
        let config = answer.config.unwrap_or_else(|| self.reactor.config.clone());
        let engine = Engine::new(RuntimeRole(Role::Server), config, self.now);
        #[cfg(feature = "deflate")]
        if let Some((agreement, options)) = &answer.deflate {
            return engine.with_deflate(*agreement, options, &ThreadPool);
        }
        engine
    }

    /// Replaces the engine with a new one, for the frames that follow the opening handshake.
    pub(crate) fn renew_engine(&self, connection: &mut Connection) {
        connection.engine = self.engine(connection.role());
    }

    /// Replaces the engine with one that compresses as negotiated in the opening handshake, if that
    /// was negotiated.
    #[cfg(feature = "deflate")]
    pub(crate) fn set_deflate(&self, connection: &mut Connection, agreed: Option<Agreement>) {
        if let Some(agreement) = agreed {
            // A handler may have negotiated compression even if the options do not enable it.
            let options = self.reactor.options.deflate.unwrap_or_default();
            let engine = self.engine(connection.role());
            connection.engine = engine.with_deflate(agreement, &options, &ThreadPool);
        }
    }

    /// Requests a connection whose handler is that of `route`.
    pub(crate) fn connect(
        &mut self,
        destination: &Destination,
        route: u16,
    ) -> Result<(), ConnectError> {
        if self.is_shutting_down {
            return Err(ConnectError::ShutDown);
        }
        self.reactor.count_attempt()?;
        let pending = Pending {
            destination: destination.clone(),
            route,
        };
        self.dialer.push(pending, self.now);
        Ok(())
    }

    /// Returns the ID of a connection of this worker.
    pub(crate) const fn id(&self, slot: Slot) -> ConnectionId {
        ConnectionId {
            worker: self.number,
            slot,
        }
    }

    /// Returns a handle to a connection, unless it belongs to another worker.
    pub(crate) fn handle_to(&mut self, id: ConnectionId) -> Option<ConnectionHandle<'_>> {
        (id.worker == self.number).then(|| ConnectionHandle::new(&mut self.commands, id.slot))
    }

    fn set_now(&mut self, now: Duration) {
        self.now = now;
        self.io.memory.queues.stall_due = tick_after(now + self.reactor.options.write_timeout);
    }
}
