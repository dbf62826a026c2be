//! What a callback can do that is about no connection.

use std::fmt;

use crate::{
    ConnectError, ConnectionId, Destination, Message, Remote, To, outbound::Pending, worker::Core,
};

/// The turn of a worker: what [`Handler::failed`](crate::Handler::failed) can do, which is about no
/// connection.
pub struct Turn<'a> {
    pub(crate) core: &'a mut Core,
    pub(crate) route: u16,
}

impl Turn<'_> {
    /// Opens another connection; see [`Tx::connect`](crate::Tx::connect). Without
    /// [`Destination::with_delay`], what fails at once is tried again at once.
    ///
    /// # Errors
    /// There are as many connections as there may be, or the reactor shuts down.
    pub fn connect(&mut self, destination: &Destination) -> Result<(), ConnectError> {
        self.core.connect(destination, self.route)
    }

    /// Returns another connection of this worker; see [`Tx::to`](crate::Tx::to).
    pub fn to(&mut self, connection: ConnectionId) -> Option<To<'_>> {
        To::new(self.core, connection)
    }

    /// Publishes a message to all subscribers of a topic; see [`Tx::publish`](crate::Tx::publish).
    pub fn publish(&mut self, topic: &str, message: Message<'_>) {
        self.core
            .burst
            .push(topic, message.kind(), message.as_bytes());
    }

    /// Returns the handle on the reactor.
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
    /// Has a connection opened whose handler is that of `route`.
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
