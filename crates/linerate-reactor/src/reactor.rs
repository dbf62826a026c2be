//! The state that the workers of a server or a connector share.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::{
    counters::Counters,
    mailbox::Mailbox,
    options::Options,
    outbound::error::ConnectError,
    resolver::Resolver,
    tls,
    topics::{burst::Burst, options::TopicRules},
};

/// The state that all workers of a server or a connector share.
pub(crate) struct Reactor {
    pub(crate) options: Options,
    /// The topics that have options of their own.
    pub(crate) topic_rules: TopicRules,
    pub(crate) config: Arc<linerate_proto::Config>,
    /// `None` for plain `ws://`.
    pub(crate) tls: Option<Arc<tls::ServerConfig>>,
    pub(crate) counters: Counters,
    /// One for each worker.
    pub(crate) mailboxes: Arc<[Mailbox]>,
    /// The route of connections that other threads open, if there is one.
    pub(crate) outbound: Option<u16>,
    /// Counts tasks that may go to any worker, to distribute them in turn.
    tasks: AtomicUsize,
    pub(crate) resolver: Resolver,
}

impl Reactor {
    /// Creates the state of `workers` workers.
    ///
    /// # Errors
    /// If the driver is not available.
    pub(crate) fn new(
        options: Options,
        topic_rules: TopicRules,
        workers: usize,
        outbound: Option<u16>,
        tls: Option<Arc<tls::ServerConfig>>,
    ) -> io::Result<Arc<Self>> {
        options.driver.check()?;
        let mailboxes = (0..workers).map(|_| Mailbox::default());
        Ok(Arc::new(Self {
            config: Arc::new(options.config),
            options,
            topic_rules,
            tls,
            counters: Counters::default(),
            mailboxes: mailboxes.collect(),
            outbound,
            tasks: AtomicUsize::new(0),
            resolver: Resolver::default(),
        }))
    }

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

    /// Counts a connection that a client has opened; returns whether it is within the limit.
    pub(crate) fn count_accepted(&self) -> bool {
        let open = self.counters.connections.fetch_add(1, Ordering::Relaxed);
        open < self.options.connections_max
    }

    /// Removes a connection from the count.
    pub(crate) fn count_closed(&self) {
        self.counters.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a connection, unless the limit is reached; fails with the limit.
    pub(crate) fn count_one_more(&self) -> Result<(), usize> {
        let connections_max = self.options.connections_max;
        let counter = &self.counters.connections;
        let one_more = |connections| (connections < connections_max).then_some(connections + 1);
        let counted = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.map(|_| ()).map_err(|_| connections_max)
    }

    /// Returns the mailbox of the next worker in turn.
    pub(crate) fn next_mailbox(&self) -> &Mailbox {
        let number = self.tasks.fetch_add(1, Ordering::Relaxed);
        &self.mailboxes[number % self.mailboxes.len()]
    }
}
