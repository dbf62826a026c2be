//! The handle through which other threads use a server.

use std::{fmt, sync::Arc};

use linerate_proto::engine::Message;

use crate::{
    adoption::{AdoptError, Adoption},
    connection::id::ConnectionId,
    counters::Counters,
    mailbox::Mailbox,
    outbound::{destination::Destination, dialer::Pending, error::ConnectError},
    reactor::Reactor,
    topics::burst::Burst,
};

/// A handle on a running server or connector that any thread can use. It publishes messages, opens,
/// adopts and resumes connections, and shuts the reactor down.
///
/// ```
/// # use linerate_reactor::{Context, Handler, Opened};
/// use linerate_reactor::{Message, Server};
///
/// # #[derive(Clone)]
/// # struct Prices;
/// # impl Handler for Prices {
/// #     type Data = ();
/// #     fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) {
/// #         _ = cx.subscribe("AAPL");
/// #     }
/// #     fn message(&mut self, (): &mut (), _cx: &mut Context<'_>, _message: Message<'_>) {}
/// # }
/// # fn main() -> std::io::Result<()> {
/// let server = Server::new().with_fallback(Prices).listen(([127, 0, 0, 1], 0).into())?;
/// let remote = server.remote();
/// std::thread::spawn(move || {
///     remote.publish("AAPL", Message::Text("201.17"));
///     remote.shut_down();
/// });
/// server.run()
/// # }
/// ```
#[derive(Clone)]
pub struct Remote(pub(crate) Arc<Reactor>);

impl Remote {
    /// Publishes a message to all subscribers of a topic.
    ///
    /// Handlers should use [`Context::publish`](crate::Context::publish), which is cheaper.
    pub fn publish(&self, topic: &str, message: Message<'_>) {
        let mut burst = Burst::default();
        burst.push(topic, message.kind(), message.as_bytes());
        self.0.publish(&*self.0.mailboxes, &Arc::new(burst));
    }

    /// Resumes reading from a connection after [`Context::pause`](crate::Context::pause). Does
    /// nothing if the connection no longer exists.
    ///
    /// Returns whether the request was delivered to the worker; it is not if 65,536 such requests
    /// are pending.
    pub fn resume(&self, connection: ConnectionId) -> bool {
        let mailbox = self.0.mailboxes.get(usize::from(connection.worker));
        mailbox.is_some_and(|mailbox| mailbox.resume(connection.index, connection.serial))
    }

    /// Opens a connection on the next worker in turn. Its handler is that of the
    /// [`Connector`](crate::Connector) or the one set by
    /// [`Server::with_outbound`](crate::Server::with_outbound). The handler is told the result,
    /// even if the workers are not running yet.
    ///
    /// A host name is looked up on the calling thread, which may take seconds; see
    /// [`Destination::resolve`] for opening many connections to one host.
    ///
    /// # Errors
    /// If the name has no address, the connection limit is reached, or the server has no handler
    /// for outbound connections.
    pub fn connect(&self, destination: Destination) -> Result<(), ConnectError> {
        let reactor = &self.0;
        let route = reactor.outbound.ok_or(ConnectError::NoHandler)?;
        let destination = destination.resolve().map_err(ConnectError::Lookup)?;
        reactor.count_attempt()?;
        reactor
            .next_mailbox()
            .connect(Pending { destination, route });
        Ok(())
    }

    /// Takes over a connection that another HTTP server has accepted, on the next worker in turn.
    ///
    /// # Errors
    /// If the connection limit is reached.
    pub fn adopt(&self, adoption: Adoption) -> Result<(), AdoptError> {
        match self.0.count_one_more() {
            Ok(()) => {
                self.0.next_mailbox().adopt(adoption);
                Ok(())
            }
            Err(connections_max) => Err(AdoptError {
                adoption: Box::new(adoption),
                connections_max,
            }),
        }
    }

    /// Shuts down gracefully: no further connection is accepted or opened, and open connections are
    /// closed with 1001. [`ListeningServer::run`](crate::ListeningServer::run) or
    /// [`PreparedConnector::run`](crate::PreparedConnector::run) returns once all of them have
    /// ended, at the latest one second after the closing handshake times out.
    pub fn shut_down(&self) {
        self.0.mailboxes.iter().for_each(Mailbox::shut_down);
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("workers", &self.0.mailboxes.len())
            .field("counters", &self.0.counters)
            .finish_non_exhaustive()
    }
}
