//! The server as other threads see it.

use std::{fmt, sync::Arc};

use crate::{
    ConnectionId, Message, burst::Burst, counters::Counters, mailbox::Mailbox, options::Options,
    topic_options::TopicRules,
};

/// What all workers of a server share.
pub(crate) struct Shared {
    pub(crate) options: Options,
    /// The topics that are not as the options say.
    pub(crate) topic_rules: TopicRules,
    pub(crate) config: Arc<linerate_proto::Config>,
    pub(crate) counters: Counters,
    pub(crate) mailboxes: Vec<Mailbox>,
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
}

/// A handle on a running server, for any thread: publishes, resumes connections, shuts down.
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

    /// Ends the server in order: no connection is accepted any more, the open ones are closed with
    /// 1001, and [`Server::run`](crate::Server::run) returns when they are gone, at the latest a
    /// second after the budget of the closing handshake.
    pub fn shut_down(&self) {
        self.0.mailboxes.iter().for_each(Mailbox::shut_down);
    }

    /// Returns what the server has counted.
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
