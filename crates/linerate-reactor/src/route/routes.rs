//! The routes of one worker, and calls of their handlers.

use std::collections::HashMap;

use linerate_proto::{
    engine::Closed,
    handshake::{Acceptance, Refusal, Upgrade},
};

use super::{AnyRoute, pages::Pages};
use crate::{
    connection::{Connection, Stage},
    core::Core,
    handler::Opened,
    outbound::{dialer::Pending, error::ConnectError},
    worker_context::WorkerContext,
};

/// The routes of a server or a connector, as cloned for one worker.
pub(crate) struct Routes {
    pub(crate) by_path: HashMap<String, u16>,
    pub(crate) fallback: Option<u16>,
    /// The answers to plain HTTP requests.
    pub(crate) pages: Pages,
    pub(crate) handlers: Vec<Box<dyn AnyRoute>>,
}

impl Routes {
    /// Returns the route of a path, if it has one.
    pub(crate) fn find(&self, path: &str) -> Option<u16> {
        self.by_path.get(path).copied().or(self.fallback)
    }

    /// Asks the handler of a route whether it accepts a request.
    pub(crate) fn accept<'u>(
        &mut self,
        route: u16,
        upgrade: &'u Upgrade<'_>,
    ) -> Result<Acceptance<'u>, Refusal> {
        self.handler(route).accept(upgrade)
    }

    /// Opens the WebSocket of a connection, whose engine must be new.
    pub(crate) fn open(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        route: u16,
        opened: Opened<'_>,
    ) {
        // The handler may already send in `open`, before its data exists, or tell another thread
        // which connection it may send to.
        connection.stage = Stage::Open {
            route,
            data: u32::MAX,
        };
        core.mailbox().record_open(connection.slot);
        let data = self.handler(route).open(core, connection, opened);
        connection.stage = Stage::Open { route, data };
        if let Some(tls) = &mut connection.tls {
            tls.forget_handshake();
        }
        // The deadline of the handshake no longer applies; that of an open connection does.
        core.deadlines.cancel(connection);
    }

    /// Handles frames; returns how many bytes have been processed. Afterwards, all output that
    /// refers to `input` has been written or copied.
    #[inline]
    pub(crate) fn input(
        &mut self,
        core: &mut Core,
        connection: &mut Connection,
        input: &mut [u8],
    ) -> usize {
        let Stage::Open { route, data } = connection.stage else {
            // Anything that a client sends after a refused request is ignored, as is what the
            // reader of a stream sends.
            return input.len();
        };
        let done = self.handler(route).input(data, core, connection, input);
        if core.io.cork.has_splices() {
            core.io.flush(connection, input, &[]);
        }
        done
    }

    /// Tells the handler that the backlog has reached its limit.
    #[cold]
    pub(crate) fn congested(&mut self, core: &mut Core, connection: &mut Connection) {
        if let Stage::Open { route, data } = connection.stage {
            self.handler(route).congested(data, core, connection);
        }
    }

    /// Tells the handler that the whole backlog has been written.
    pub(crate) fn drain(&mut self, core: &mut Core, connection: &mut Connection) {
        if let Stage::Open { route, data } = connection.stage {
            self.handler(route).drain(data, core, connection);
        }
    }

    /// Tells the handler that a message takes too long to arrive.
    #[cold]
    pub(crate) fn message_late(&mut self, core: &mut Core, connection: &mut Connection) {
        if let Stage::Open { route, data } = connection.stage {
            self.handler(route).message_late(data, core, connection);
        }
    }

    /// Tells the handler that an open connection has ended.
    pub(crate) fn close(&mut self, core: &mut Core, connection: &mut Connection, closed: Closed) {
        if let Stage::Open { route, data } = connection.stage {
            self.handler(route).close(data, core, connection, closed);
        }
    }

    /// Frees the data of an open connection that continues elsewhere.
    #[cfg(unix)]
    pub(crate) fn forget(&mut self, connection: &Connection) {
        if let Stage::Open { route, data } = connection.stage {
            self.handler(route).forget(data);
        }
    }

    /// Tells the handler that a requested connection could not be opened.
    pub(crate) fn failed(&mut self, core: &mut Core, pending: Pending, error: ConnectError) {
        core.reactor.count_closed();
        let Pending { destination, route } = pending;
        let mut worker = WorkerContext { core, route };
        self.handler(route).failed(&mut worker, &destination, error);
    }

    #[inline]
    fn handler(&mut self, route: u16) -> &mut dyn AnyRoute {
        &mut *self.handlers[usize::from(route)]
    }
}
