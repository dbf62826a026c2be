//! The handle passed to callbacks that do not belong to a connection.

use std::fmt;

use linerate_proto::engine::Message;

use crate::{
    commands::ConnectionHandle,
    connection::id::ConnectionId,
    core::Core,
    outbound::{destination::Destination, error::ConnectError},
    remote::Remote,
};

/// The handle passed to [`Handler::failed`](crate::Handler::failed), a callback without a
/// connection.
pub struct WorkerContext<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) route: u16,
}

impl WorkerContext<'_> {
    /// Opens another connection; see [`Context::connect`](crate::Context::connect). Without
    /// [`Destination::with_delay`], an attempt that fails immediately is repeated immediately.
    ///
    /// # Errors
    /// If the connection limit is reached, or the reactor is shutting down.
    pub fn connect(&mut self, destination: &Destination) -> Result<(), ConnectError> {
        self.core.connect(destination, self.route)
    }

    /// Returns a handle for another connection of this worker; see
    /// [`Context::to`](crate::Context::to).
    pub fn to(&mut self, connection: ConnectionId) -> Option<ConnectionHandle<'_>> {
        self.core.handle_to(connection)
    }

    /// Publishes a message to all subscribers of a topic; see
    /// [`Context::publish`](crate::Context::publish).
    pub fn publish(&mut self, topic: &str, message: Message<'_>) {
        self.core
            .burst
            .push(topic, message.kind(), message.as_bytes());
    }

    /// Returns the handle on the server or connector.
    pub fn remote(&self) -> Remote {
        Remote(self.core.reactor.clone())
    }
}

impl fmt::Debug for WorkerContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerContext").finish_non_exhaustive()
    }
}
