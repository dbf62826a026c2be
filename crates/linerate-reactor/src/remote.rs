//! The handle through which other threads use a server.

pub(crate) mod error;

use std::{fmt, sync::Arc};

use linerate_proto::{CloseCode, CloseFrame, engine::Message};

use self::error::RemoteError;

use crate::{
    adoption::{AdoptError, Adoption},
    connection::id::ConnectionId,
    counters::Counters,
    mailbox::{Mailbox, NotTaken},
    outbound::{destination::Destination, dialer::Pending, error::ConnectError},
    reactor::Reactor,
    topics::burst::Burst,
};

/// A handle on a running server or connector that any thread can use. It publishes messages, sends
/// to single connections and closes them, opens, adopts and resumes connections, and shuts the
/// reactor down.
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

    /// Sends a message to one connection. Its [identifier](ConnectionId) comes from
    /// [`Context::id`](crate::Context::id) and never means another connection, however many the
    /// server has had.
    ///
    /// `Ok` means that the message is queued for the worker of the connection, not that the peer
    /// has received it. The worker sends the messages of a thread to a connection in order,
    /// interleaved with those of other threads and of its handler; consecutive ones are written at
    /// once. It drops a message, and [counts](Counters::messages_dropped) it, if the connection has
    /// ended or is closing when it is the message's turn, or is sending a message in pieces. Order
    /// with respect to publications is not defined.
    ///
    /// Handlers should use [`Context::to`](crate::Context::to) for connections of their own worker,
    /// which is cheaper, and this for others.
    ///
    /// ```
    /// use linerate_reactor::{ConnectionId, Message, Remote, RemoteError};
    ///
    /// /// Sends the answer to a job that took long. Returns false if it has to be sent again later.
    /// fn answer(remote: &Remote, client: ConnectionId, answer: &str) -> bool {
    ///     match remote.send(client, Message::Text(answer)) {
    ///         Ok(()) | Err(RemoteError::Closed) => true,
    ///         Err(_) => false,
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// If the connection has ended, [`close`](Self::close) was called for it, it does not keep up,
    /// or too much waits for its worker. Nothing is queued then.
    pub fn send(&self, connection: ConnectionId, message: Message<'_>) -> Result<(), RemoteError> {
        let mailbox = self.mailbox_of(connection).ok_or(RemoteError::Closed)?;
        let taken = mailbox.send(connection, message, self.0.options.mailbox_bytes_max);
        taken.map_err(|reason| self.error(reason))
    }

    /// Starts the closing handshake of one connection, after all messages that were sent to it
    /// before. From now on, no thread can [send](Self::send) to it.
    ///
    /// There is always room for this request.
    ///
    /// # Errors
    /// If the connection has ended, this was already called for it, or `reason` has more than 123
    /// bytes.
    pub fn close(
        &self,
        connection: ConnectionId,
        code: CloseCode,
        reason: &str,
    ) -> Result<(), RemoteError> {
        let (bytes, bytes_max) = (reason.len(), CloseFrame::REASON_BYTES_MAX);
        if bytes > bytes_max {
            return Err(RemoteError::ReasonTooLong { bytes, bytes_max });
        }
        let mailbox = self.mailbox_of(connection).ok_or(RemoteError::Closed)?;
        let taken = mailbox.close(connection, code, reason);
        taken.map_err(|reason| self.error(reason))
    }

    /// Returns whether a connection has neither ended nor been [closed](Self::close) by a thread.
    /// It may end at any time.
    pub fn is_open(&self, connection: ConnectionId) -> bool {
        let mailbox = self.mailbox_of(connection);
        mailbox.is_some_and(|mailbox| mailbox.is_open(connection))
    }

    /// Resumes reading from a connection after [`Context::pause`](crate::Context::pause). Does
    /// nothing if the connection no longer exists.
    ///
    /// Returns whether the request was delivered to the worker; it is not if 65,536 such requests
    /// are pending.
    pub fn resume(&self, connection: ConnectionId) -> bool {
        let mailbox = self.mailbox_of(connection);
        mailbox.is_some_and(|mailbox| mailbox.resume(connection.slot))
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

    /// Returns the mailbox of a connection's worker. `None` is possible only for the identifier of
    /// another reactor's connection.
    fn mailbox_of(&self, connection: ConnectionId) -> Option<&Mailbox> {
        self.0.mailboxes.get(usize::from(connection.worker))
    }

    fn error(&self, reason: NotTaken) -> RemoteError {
        let options = &self.0.options;
        match reason {
            NotTaken::Closed => RemoteError::Closed,
            NotTaken::Congested => RemoteError::Congested {
                bytes_max: options.backlog_bytes_max,
            },
            NotTaken::Full(bytes) => RemoteError::Full {
                bytes,
                bytes_max: options.mailbox_bytes_max,
            },
        }
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
