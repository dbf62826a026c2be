//! The end of a connection, and of all of them.

use std::time::Duration;

use linerate_proto::{CloseCode, Role, engine::State};

use super::{Core, LISTENER, Listener, Worker};
use crate::{
    ConnectError,
    connection::{Connection, Stage},
    worker::wheel::tick_at,
};

impl Worker {
    /// Ends a connection: tells the handler and releases the connection's resources.
    pub(super) fn end(&mut self, key: usize) {
        let Some(mut connection) = self.connections.remove(key) else {
            return;
        };
        if connection.alarm != 0 {
            self.wheel.remove(connection.alarm, key as u32);
        }
        let is_refused = matches!(connection.stage, Stage::Refused { .. });
        let mut attempt = None;
        match connection.stage {
            Stage::Open { route, data } => {
                let closed = connection.engine.handle_eof();
                let route = &mut self.routes.handlers[usize::from(route)];
                route.close(data, &mut self.core, &mut connection, closed);
                self.core.topics.unsubscribe_all(connection.id.index);
            }
            Stage::Refused { .. } => self.refused -= 1,
            Stage::Connecting(begun) => attempt = Some(begun),
            Stage::Opening(_) => {}
        }
        if !is_refused && attempt.is_none() {
            self.core.count_closed();
        }
        let Core { pool, spare, .. } = &mut self.core;
        connection.backlog.clear(pool);
        connection.held.clear(pool);
        if let Some(mut gather) = connection.gather.take() {
            pool.give(gather.take());
            spare.give(gather);
        }
        if let Some(tls) = connection.tls.take() {
            tls.give_memory(pool);
        }
        let (socket, token) = (connection.socket, connection.id.token());
        self.core.driver.close(socket, token, &connection.watch);
        if self.accept_due.is_some() {
            self.accept_due = Some(tick_at(self.core.now));
        }
        if let Some(attempt) = attempt {
            self.end_attempt(*attempt, connection.ended);
        }
    }

    /// Starts to shut down: closes the listener and all connections.
    pub(super) fn close_all(&mut self) {
        if let Some(Listener { socket, watch }) = self.listener.take() {
            self.core.driver.close(socket, LISTENER, &watch);
        }
        self.accept_due = None;
        self.arrivals.clear();
        self.stop_dialing();
        let close_timeout = self.core.shared.config.close_timeout;
        self.shutdown_due = Some(self.core.now + close_timeout + Duration::from_secs(1));
        for key in self.keys() {
            let connection = &mut self.connections[key];
            match connection.stage {
                Stage::Open { .. } => {
                    // The reason is within the length limit, and there is no other error.
                    let reason = match connection.role() {
                        Role::Client => "client shuts down",
                        Role::Server => "server shuts down",
                    };
                    let now = self.core.now;
                    _ = connection.engine.close(CloseCode::GOING_AWAY, reason, now);
                    // Shutting down does not wait for a handler that has paused the input.
                    connection.paused = false;
                }
                Stage::Connecting(_) => self.give_up(key, ConnectError::ShutDown),
                Stage::Opening(_) => connection.lost = true,
                Stage::Refused { .. } => {}
            }
            self.settle(key);
        }
    }

    pub(super) fn drop_all(&mut self) {
        for key in self.keys() {
            self.end(key);
        }
    }

    fn keys(&self) -> Vec<usize> {
        self.connections.indices().collect()
    }
}

/// Returns whether nothing remains to be done for a connection except to close its socket.
pub(super) fn is_over(connection: &Connection) -> bool {
    let written = connection.backlog.is_empty();
    match connection.stage {
        // Input that arrived before the end is still handled.
        Stage::Open { .. } if !connection.held.is_empty() => false,
        Stage::Open { .. } if connection.ended => written || !connection.engine.is_input_over(),
        // §7.1.1: the server closes the TCP connection first. Both Close frames have been
        // exchanged, so that there is no unread input that would cause a reset. A client waits for
        // the server to close.
        Stage::Open { .. } => {
            written
                && connection.engine.state() == State::Closed
                && connection.role() == Role::Server
        }
        Stage::Connecting(_) | Stage::Opening(_) => connection.ended,
        Stage::Refused { .. } => connection.ended && written,
    }
}

/// Returns whether our output ends once it is written, while input is still read and ignored.
/// Otherwise closing could reset the connection before the peer has read the reason.
pub(super) fn ends_output(connection: &Connection) -> bool {
    match connection.stage {
        Stage::Open { .. } => connection.engine.ends_stream(),
        Stage::Connecting(_) | Stage::Opening(_) => false,
        Stage::Refused { .. } => true,
    }
}
