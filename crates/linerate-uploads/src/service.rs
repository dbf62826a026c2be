//! The service that a server offers at one of its paths.

use std::{net::IpAddr, sync::Arc};

use linerate::{Options, Receiver, Result, Sender};
use linerate_budget::Budget;

use crate::{
    access::{Access, Visitor},
    conversation::Conversation,
    farewell::Farewell,
    options::LogsOptions,
    sessions::{Sessions, StartError},
};

/// Serves uploads and followed logs to the connections of all workers.
#[derive(Clone, Debug)]
pub struct Service {
    sessions: Arc<Sessions>,
    access: Arc<dyn Access>,
}

impl Service {
    /// Creates the service, and starts to read the files that it follows. Their memory, and that of
    /// all uploads, is also charged to the budget of the process.
    ///
    /// # Errors
    /// Fails if the database of countries cannot be used, or a thread cannot be started.
    pub fn start(
        options: &LogsOptions,
        access: impl Access + 'static,
        process: Budget,
    ) -> std::result::Result<Self, StartError> {
        Ok(Self {
            sessions: Sessions::new(options, process)?,
            access: Arc::new(access),
        })
    }

    /// Returns the options for connections of this service, derived from those that all connections
    /// of the server have in common.
    ///
    /// A message may be as long as the window, because the client may not send more than that
    /// without an acknowledgement. Messages are received in pieces and never held as a whole: while
    /// the application does not receive, reading stops after [`Options::recv_queue_bytes_max`].
    pub fn connection_options(&self, common: &Options) -> Options {
        let mut options = common.clone();
        options.config.limits.message_bytes_max = self.sessions.limits.window_bytes;
        options
    }

    /// Returns the number of uploads that a page shows, and the number of those that are kept
    /// without one.
    pub fn count(&self) -> (usize, usize) {
        self.sessions.count()
    }

    /// Serves a connection from `address` until its conversation is finished, and returns how to
    /// close it.
    ///
    /// # Errors
    /// Fails if the connection is lost. Its session is then kept for a while.
    pub async fn serve(
        &self,
        address: IpAddr,
        sender: &Sender,
        receiver: &mut Receiver,
    ) -> Result<Farewell> {
        let visitor = Visitor::new(address, &*self.access);
        Conversation::new(&self.sessions, sender, visitor)
            .talk(receiver)
            .await
    }
}
