//! The handle through which other threads use a server.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    AdoptError, Adoption, ConnectError, ConnectionId, Destination, Message,
    counters::Counters,
    mailbox::Mailbox,
    options::Options,
    outbound::{Pending, Resolver},
    tls,
    topics::{burst::Burst, options::TopicRules},
};

/// The state that all workers of a server or a connector share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// The topics that have options of their own.
    pub(crate) topic_rules: TopicRules,
    pub(crate) config: Arc<linerate_proto::Config>,
    /// `None` for plain `ws://`.
    pub(crate) tls: Option<Arc<tls::ServerConfig>>,
    pub(crate) counters: Counters,
    pub(crate) mailboxes: Vec<Mailbox>,
    /// The route of connections that other threads open, if there is one.
    pub(crate) outbound: Option<u16>,
    /// Counts tasks that may go to any worker, to distribute them in turn.
    pub(crate) turn: AtomicUsize,
    pub(crate) resolver: Resolver,
}

impl Shared {
    /// Leaves publications in the given mailboxes, sharing one copy.
    pub(crate) fn publish<'a>(
        &self,
        mailboxes: impl IntoIterator<Item = &'a Mailbox>,
        burst: &Arc<Burst>,
    ) {
        for mailbox in mailboxes {
            if !mailbox.publish(burst, self.options.mailbox_bytes_max) {
                self.counters.dropped_between_workers.add(burst.count());
            }
        }
    }

    /// Counts an outbound connection, unless the limit is reached.
    pub(crate) fn count_attempt(&self) -> Result<(), ConnectError> {
        let too_many = |connections_max| ConnectError::TooMany { connections_max };
        self.count_one_more().map_err(too_many)
    }

    /// Counts a connection, unless the limit is reached; fails with the limit.
    fn count_one_more(&self) -> Result<(), usize> {
        let connections_max = self.options.connections_max;
        let counter = &self.counters.connections;
        let one_more = |connections| (connections < connections_max).then_some(connections + 1);
        let counted = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map(|_| ()).map_err(|_| connections_max)
    }

    /// Returns the mailbox of the next worker in turn.
    fn next_mailbox(&self) -> &Mailbox {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.mailboxes[turn % self.mailboxes.len()]
    }
}

/// A handle on a running server or connector that any thread can use. It publishes messages, opens,
/// adopts and resumes connections, and shuts the reactor down.
#[derive(Clone)]
pub struct Remote(pub(crate) Arc<Shared>);

impl Remote {
    /// Publishes a message to all subscribers of a topic.
    ///
    /// Handlers should use [`Tx::publish`](crate::Tx::publish), which is cheaper.
    pub fn publish(&self, topic: &str, message: Message<'_>) {
        let mut burst = Burst::default();
        burst.push(topic, message.kind(), message.as_bytes());
        self.0.publish(&self.0.mailboxes, &Arc::new(burst));
    }

    /// Resumes reading from a connection after [`Tx::pause`](crate::Tx::pause). Does nothing if the
    /// connection no longer exists.
    ///
    /// Returns whether the request was delivered to the worker; it is not if 65,536 such requests
    /// are pending.
    pub fn resume(&self, connection: ConnectionId) -> bool {
        let mailbox = self.0.mailboxes.get(usize::from(connection.worker));
        mailbox.is_some_and(|mailbox| mailbox.resume(connection.index, connection.serial))
    }

    /// Opens a connection on the next worker in turn. Its handler is that of the
    /// [`Connector`](crate::Connector) or the one set by
    /// [`Builder::outbound`](crate::Builder::outbound). The handler is told the result, even if the
    /// workers are not running yet.
    ///
    /// A host name is looked up on the calling thread, which may take seconds; see
    /// [`Destination::resolve`] for opening many connections to one host.
    ///
    /// # Errors
    /// If the name has no address, the connection limit is reached, or the server has no handler
    /// for outbound connections.
    pub fn connect(&self, destination: Destination) -> Result<(), ConnectError> {
        let shared = &self.0;
        let route = shared.outbound.ok_or(ConnectError::NoHandler)?;
        let destination = destination.resolve().map_err(ConnectError::Lookup)?;
        shared.count_attempt()?;
        shared
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
    /// closed with 1001. [`Server::run`](crate::Server::run) or
    /// [`Connector::run`](crate::Connector::run) returns once all of them have ended, at the latest
    /// one second after the closing handshake times out.
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
