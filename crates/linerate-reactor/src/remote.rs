//! The server as other threads see it.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    ConnectError, ConnectionId, Destination, Message,
    burst::Burst,
    counters::Counters,
    mailbox::Mailbox,
    options::Options,
    outbound::{Pending, Resolver},
    tls,
    topic_options::TopicRules,
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
    /// Counts those connections, so that the workers take turns.
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
        let connections_max = self.options.connections_max;
        let counter = &self.counters.connections;
        let one_more = |connections| (connections < connections_max).then_some(connections + 1);
        match counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more) {
            Ok(_) => Ok(()),
            Err(_) => Err(ConnectError::TooMany { connections_max }),
        }
    }
}

/// A handle on a server or a connector that runs, for any thread: publishes, opens and resumes
/// connections, shuts down.
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
        let worker = shared.turn.fetch_add(1, Ordering::Relaxed) % shared.mailboxes.len();
        shared.mailboxes[worker].connect(Pending { destination, route });
        Ok(())
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
