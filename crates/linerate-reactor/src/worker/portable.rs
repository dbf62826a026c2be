//! Connections that leave a worker for another process, and those that come from one.

use linerate_proto::{
    Role,
    portable::{self, Reader, Version, Writer},
};

use super::service::Service;
use crate::{
    connection::{Connection, Stage, id::Slot},
    driver::{event::Interest, socket},
    export::{ExportError, ExportedState, ImportError, ImportOptions},
    handler::Opened,
    platform::Socket,
    wheel::tick_after,
};

/// The size of the state of an idle connection, in bytes, and some more.
const STATE_BYTES: usize = 512;

impl Service {
    /// Takes out an open connection after all output in the cork, without an event. The driver must
    /// not be io_uring.
    ///
    /// # Errors
    /// Fails if the connection cannot be exported; it is then unchanged, and must be settled.
    pub(crate) fn export(
        &mut self,
        key: usize,
        version: Version,
    ) -> Result<(Socket, ExportedState), ExportError> {
        self.parts.core.begin_turn();
        let core = &mut self.parts.core;
        let connection = &mut self.connections[key];
        if connection.engine.wants_transmit() {
            connection.engine.poll_transmit(&mut core.io.cork.bytes);
        }
        // Writing nothing would fail if the stream to the peer was ended.
        if !core.io.is_flushed() {
            core.io.flush(connection, &[], &[]);
        }
        let route = match connection.stage {
            Stage::Open { route, .. } => route,
            Stage::Streaming { .. } => return Err(ExportError::Stream),
            _ => return Err(ExportError::Ended),
        };
        // The owner of the reactor has not paused an input that waits only until it takes messages.
        let is_paused = connection.paused && !core.events.is_stopped(connection.slot);
        let mut state = Writer::with_capacity(version, STATE_BYTES);
        state.u16(route);
        connection.export(&mut state, version, is_paused, core.now)?;
        core.events.forget_stopped(connection.slot);
        core.mailbox().record_closed(connection.slot);
        core.reactor.count_closed();
        let connection = self.take(key).ok_or(ExportError::Ended)?;
        self.parts.routes.forget(&connection);
        Ok((connection.socket, ExportedState(state.finish().into())))
    }

    /// Continues a connection that another process has exported; returns its slot. The connection
    /// may have ended already.
    ///
    /// # Errors
    /// Fails if the state is not that of a connection, or the socket cannot be watched.
    pub(crate) fn import(
        &mut self,
        socket: Socket,
        state: &[u8],
        options: &ImportOptions,
    ) -> Result<Slot, ImportError> {
        self.parts.core.begin_turn();
        let core = &mut self.parts.core;
        let (mut state, _) = Reader::new(state)?;
        let route = state.u16("handler")?;
        if usize::from(route) >= self.parts.routes.handlers.len() {
            let (field, value) = ("handler", route.into());
            return Err(portable::ImportError::Invalid { field, value }.into());
        }
        // Its other options move with it.
        socket::set_nonblocking(&socket)?;
        let stage = Stage::Open { route, data: 0 };
        let added = self
            .connections
            .add(core, socket, stage, Role::Server, Interest::READ);
        let key = added.map_err(|(_, error)| error)?;
        let connection = &mut self.connections[key];
        connection.watch.share();
        let importer = options.importer(&core.reactor.config, &core.reactor.options);
        let imported = connection
            .import(
                &mut state,
                &importer,
                options,
                &mut core.io.memory,
                core.now,
            )
            .and_then(|()| state.finish());
        if let Err(error) = imported {
            self.take(key);
            return Err(error.into());
        }
        connection.message_due = match core.message_timeout {
            None => 0,
            Some(timeout) => connection.message_due.min(tick_after(core.now + timeout)),
        };
        core.reactor.count_accepted();
        let opened = Opened::Imported;
        self.parts.routes.open(core, connection, route, opened);
        let slot = connection.slot;
        core.io.limit_backlog(connection);
        self.settle(key);
        Ok(slot)
    }

    /// Removes a connection without closing its socket, and frees its memory.
    fn take(&mut self, key: usize) -> Option<Connection> {
        let core = &mut self.parts.core;
        let mut connection = self.connections.remove(core, key)?;
        connection.free(&mut core.io.memory);
        // This cannot fail: the socket was added, to a driver that is not io_uring.
        _ = core.io.driver.release(&connection.socket);
        Some(connection)
    }
}
