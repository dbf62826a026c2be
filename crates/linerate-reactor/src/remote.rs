//! The server as other threads see it.

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

/// What all workers of a server or a connector share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// The topics that are not as the options say.
    pub(crate) topic_rules: TopicRules,
    pub(crate) config: Arc<linerate_proto::Config>,
    /// None for plain `ws://`.
    pub(crate) tls: Option<Arc<tls::ServerConfig>>,
    pub(crate) counters: Counters,
    pub(crate) mailboxes: Vec<Mailbox>,
    /// The route of connections that other threads ask for, if there is one.
    pub(crate) outbound: Option<u16>,
    /// Counts what other threads leave for any worker, so that they take turns.
    pub(crate) turn: AtomicUsize,
    pub(crate) resolver: Resolver,
}

impl Shared {
    /// Leaves publications in some of the mailboxes, one copy for all.
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

    /// Counts a connection more that we open, if it may be.
    pub(crate) fn count_attempt(&self) -> Result<(), ConnectError> {
        let too_many = |connections_max| ConnectError::TooMany { connections_max };
        self.count_one_more().map_err(too_many)
    }

    /// Counts a connection more, if it may be; fails with the limit.
    fn count_one_more(&self) -> Result<(), usize> {
        let connections_max = self.options.connections_max;
        let counter = &self.counters.connections;
        let one_more = |connections| (connections < connections_max).then_some(connections + 1);
        let counted = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map(|_| ()).map_err(|_| connections_max)
    }

    /// Returns the mailbox of the worker whose turn it is.
    fn next_mailbox(&self) -> &Mailbox {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        &self.mailboxes[turn % self.mailboxes.len()]
    }
}

/// A handle on a server or a connector that runs, for any thread: publishes, opens, adopts and
/// resumes connections, shuts down.
#[derive(Clone)]
pub struct Remote(pub(crate) Arc<Shared>);

impl Remote {
    /// Publishes a message to all subscribers of a topic.
    ///
    /// Handlers publish by [`Tx::publish`](crate::Tx::publish), which is cheaper.
    pub fn publish(&self, topic: &str, message: Message<'_>) {
        let mut burst = Burst::default();
        burst.push(topic, message.kind(), message.as_bytes());
        self.0.publish(&self.0.mailboxes, &Arc::new(burst));
    }

    /// Lets the input of a connection go on after [`Tx::pause`](crate::Tx::pause). Nothing happens
    /// if the connection is gone.
    ///
    /// Returns whether the worker could be told; it can't while 65,536 such requests wait.
    pub fn resume(&self, connection: ConnectionId) -> bool {
        let mailbox = self.0.mailboxes.get(usize::from(connection.worker));
        mailbox.is_some_and(|mailbox| mailbox.resume(connection.index, connection.serial))
    }

    /// Opens a connection on one of the workers, in turn, by the handler of the
    /// [`Connector`](crate::Connector) or that of
    /// [`Builder::outbound`](crate::Builder::outbound). The handler learns what becomes of it, even
    /// if the workers do not run yet.
    ///
    /// A name is looked up here, which may take seconds; see [`Destination::resolve`] for many
    /// connections to one.
    ///
    /// # Errors
    /// The name has no address, there are as many connections as there may be, or the server has no
    /// handler for it.
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

    /// Goes on with a connection that another HTTP server has accepted, on one of the workers, in
    /// turn.
    ///
    /// # Errors
    /// There are as many connections as there may be.
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

    /// Ends it all in order: no connection is accepted or begun any more, the open ones are closed
    /// with 1001, and [`Server::run`](crate::Server::run) or
    /// [`Connector::run`](crate::Connector::run) returns when they are gone, at the latest a second
    /// after the budget of the closing handshake.
    pub fn shut_down(&self) {
        self.0.mailboxes.iter().for_each(Mailbox::shut_down);
    }

    /// Returns what has been counted.
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
