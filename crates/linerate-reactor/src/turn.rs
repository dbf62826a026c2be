//! The handle passed to callbacks that do not belong to a connection.

use std::fmt;

use crate::{
    ConnectError, ConnectionId, Destination, Message, Remote, To, outbound::Pending, worker::Core,
};

/// The handle passed to [`Handler::failed`](crate::Handler::failed), a callback without a
/// connection.
pub struct Turn<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) route: u16,
}

impl Turn<'_> {
    /// Opens another connection; see [`Tx::connect`](crate::Tx::connect). Without
    /// [`Destination::with_delay`], an attempt that fails immediately is repeated immediately.
    ///
    /// # Errors
    /// If the connection limit is reached, or the reactor is shutting down.
    pub fn connect(&mut self, destination: &Destination) -> Result<(), ConnectError> {
        self.core.connect(destination, self.route)
    }

    /// Returns a handle for another connection of this worker; see [`Tx::to`](crate::Tx::to).
    pub fn to(&mut self, connection: ConnectionId) -> Option<To<'_>> {
        To::new(self.core, connection)
    }

    /// Publishes a message to all subscribers of a topic; see [`Tx::publish`](crate::Tx::publish).
    pub fn publish(&mut self, topic: &str, message: Message<'_>) {
        self.core
            .burst
            .push(topic, message.kind(), message.as_bytes());
    }

    /// Returns the handle on the server or connector.
    pub fn remote(&self) -> Remote {
        Remote(self.core.shared.clone())
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

impl Core {
    /// Requests a connection whose handler is that of `route`.
    pub(crate) fn connect(
        &mut self,
        destination: &Destination,
        route: u16,
    ) -> Result<(), ConnectError> {
        if self.dialer.is_shut {
            return Err(ConnectError::ShutDown);
        }
        self.shared.count_attempt()?;
        let pending = Pending {
            destination: destination.clone(),
            route,
        };
        self.dialer.push(pending, self.now);
        Ok(())
    }
}
