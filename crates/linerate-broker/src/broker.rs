//! The trait that all brokers implement.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo, presence::Counts};

use crate::{
    event::LinkState,
    occupancy::OccupancyChange,
    presence::PresenceChange,
    registry::Beat,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
};

/// A future that a broker returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A future that a broker returns for a request that can fail.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, BrokerError>>;

/// The longest time for which a broker stores a value that can be [taken](Broker::take).
pub const PUT_TTL_MAX: Duration = Duration::from_secs(60 * 60);

/// The broker of a node. It hands everything that arrives to the [`Ingest`](crate::Ingest) that it
/// was created with.
///
/// One contract suite (`tests/it/contract`) defines what all brokers guarantee.
pub trait Broker: fmt::Debug + Send + Sync + 'static {
    /// Publishes in a channel. Completes when the broker has accepted the publication.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses. Except for
    /// [`BrokerError::Refused`], it is unknown whether the publication was published.
    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published>;

    /// Starts to receive the publications of a channel. Completes when no publication from now on
    /// can be missed.
    ///
    /// A node calls this once per channel, until it calls [`unsubscribe`](Self::unsubscribe). If
    /// the broker is unavailable, this waits for it up to the deadline. Once subscribed, the broker
    /// reconnects by itself.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses. The channel is then not
    /// subscribed.
    fn subscribe<'a>(&'a self, channel: &'a ChannelName, options: StreamOptions) -> Answer<'a, ()>;

    /// Stops receiving the publications of a channel.
    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()>;

    /// Returns the publications that the channel's stream holds, and its newest position.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable, or if the channel keeps no stream.
    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History>;

    /// Deletes the publications that the channel's stream holds. Offsets continue.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable, or if the channel keeps no stream.
    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> Answer<'a, ()>;

    /// Sends an internal message to the [node](Self::node) with the ID `to`, or to all nodes,
    /// including this one. No other node receives a message with a `to`.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn send_control<'a>(&'a self, to: Option<&'a str>, message: Bytes) -> Answer<'a, ()>;

    /// Returns the ID of this run of the node, unique among all nodes. It has only ASCII letters,
    /// digits and hyphens.
    fn node(&self) -> &str;

    /// Registers this node, or renews its [lease](crate::registry::LEASE). `details` is what
    /// [`node_details`](Self::node_details) returns about it.
    ///
    /// The cost does not depend on the number of nodes. By default, the node is the only one of its
    /// broker.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn beat(&self, _details: Bytes) -> Answer<'_, Beat> {
        Box::pin(std::future::ready(Ok(Beat::ALONE)))
    }

    /// Ends the lease of this node.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn deregister(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the IDs of the registered nodes. A broker that ends with its only node returns none.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn nodes(&self) -> Answer<'_, Vec<String>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns the details of the registered nodes. A broker that ends with its only node returns
    /// none.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn node_details(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns whether the broker stores the presence of clients of all nodes. If it does not, this
    /// node is the only one.
    fn stores_presence(&self) -> bool {
        false
    }

    /// Stores which clients of this node are present in channels, and which no longer are. An entry
    /// exists while the node is registered. The changes must concern different clients or channels;
    /// they are made in any order, and some may have been made if there is an error.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses, and [`BrokerError::LeaseEnded`] if
    /// it has removed the entries of this node. Then call [`reset_presence`](Self::reset_presence)
    /// and store everything again.
    fn set_presence<'a>(&'a self, _changes: &'a [PresenceChange]) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Removes all entries of this node, at the latest when its lease ends.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses. Later entries are stored anyway.
    fn reset_presence(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the clients of all nodes that are present in a channel.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses, or if the entries have more than
    /// about `bytes_max` bytes.
    fn presence<'a>(
        &'a self,
        _channel: &'a ChannelName,
        _bytes_max: usize,
    ) -> Answer<'a, Vec<ClientInfo>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Returns how many clients and users of all nodes are present in a channel.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn presence_counts<'a>(&'a self, _channel: &'a ChannelName) -> Answer<'a, Counts> {
        Box::pin(std::future::ready(Ok(Counts::default())))
    }

    /// Stores which names this node occupies, and which no longer. A name is occupied for as long
    /// as a registered node occupies it. The changes must concern different names.
    ///
    /// Returns, for each change, whether it made the name occupied or vacant among all nodes. From
    /// the first call on, even without changes, a node may also be told with
    /// [`Event::Vacated`](crate::Event::Vacated) of names that a node that has ended had occupied.
    ///
    /// By default, the node is the only one of its broker.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses. Repeat the changes then: those
    /// that were made have the same result again, except that another node may have reported a name
    /// that became vacant in the meantime. Returns [`BrokerError::LeaseEnded`] if the broker has
    /// removed the names of this node. Then call [`reset_occupancy`](Self::reset_occupancy) and
    /// store everything again.
    fn set_occupancy<'a>(&'a self, changes: &'a [OccupancyChange]) -> Answer<'a, Vec<bool>> {
        Box::pin(std::future::ready(Ok(vec![true; changes.len()])))
    }

    /// Removes all names that this node occupies, at the latest when its lease ends.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses. Later changes are stored anyway.
    fn reset_occupancy(&self) -> Answer<'_, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Stores a value for all nodes, including those that start later, and replaces the value with
    /// the same `id`. The value may be deleted at `expires_at`, in seconds since 1970; `None` means
    /// never.
    ///
    /// A broker that ends with its only node stores nothing.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn keep<'a>(&'a self, _id: &'a str, _value: Bytes, _expires_at: Option<u64>) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns the values that nodes have [stored](Self::keep).
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn kept(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Stores a value that any node can [take](Self::take) within `ttl`, which is at most
    /// [`PUT_TTL_MAX`], and replaces the value with the same `key`. The broker may drop values
    /// early, the oldest first.
    ///
    /// By default, the broker stores nothing.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn put<'a>(&'a self, _key: &'a str, _value: Bytes, _ttl: Duration) -> Answer<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Removes the value that was [stored](Self::put) under `key`, and returns it. If several nodes
    /// take a value at the same time, at most one of them gets it.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable or refuses.
    fn take<'a>(&'a self, _key: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    /// Returns whether `channel` is a pattern. Always false if the broker does not support
    /// patterns.
    fn is_pattern(&self, channel: &ChannelName) -> bool;

    /// Returns the [name](crate::BrokerKind::name) of this kind of broker.
    fn name(&self) -> &'static str;

    /// Writes a test value in the same way as a durable publication. Completes when the broker has
    /// accepted it.
    ///
    /// # Errors
    /// Returns an error if the broker is unavailable, or if it refuses as it would refuse a durable
    /// publication.
    fn probe_write(&self) -> Answer<'_, ()>;

    /// Returns the state of the link, according to the newest probe.
    fn link(&self) -> LinkState;

    /// Ends all tasks and connections.
    fn shut_down(&self) -> BoxFuture<'_, ()>;
}

/// Checks that a channel keeps a history, which patterns and channels without a stream do not.
pub(crate) fn check_history(
    broker: &impl Broker,
    channel: &ChannelName,
    options: StreamOptions,
) -> Result<(), BrokerError> {
    match options.size_max == 0 || broker.is_pattern(channel) {
        true => Err(BrokerError::NoHistory),
        false => Ok(()),
    }
}

/// Checks that a payload is not larger than the broker carries.
pub(crate) fn check_payload(bytes: usize, bytes_max: usize) -> Result<(), BrokerError> {
    match bytes > bytes_max {
        true => Err(BrokerError::PayloadTooLarge { bytes, bytes_max }),
        false => Ok(()),
    }
}

/// The reason why a broker did not carry out a request.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// There is currently no link to the broker.
    #[error("broker is unavailable: {reason}")]
    Away {
        /// How the last attempt to connect ended.
        reason: String,
    },
    /// The broker has removed the entries of this node.
    #[error("what this node had stored was removed because its lease has ended")]
    LeaseEnded,
    /// The channel keeps no stream.
    #[error("channel keeps no history")]
    NoHistory,
    /// A stream is not read because this node has used up its memory.
    #[error("server is short of memory, try again later")]
    Overloaded,
    /// The payload is larger than the broker carries.
    #[error("payload has {bytes} bytes; at most {bytes_max} are allowed")]
    PayloadTooLarge {
        /// The size of the payload in bytes.
        bytes: usize,
        /// The maximum size in bytes.
        bytes_max: usize,
    },
    /// The presence information of a channel does not fit into an answer.
    #[error(
        "limit exceeded: presence information is larger than {bytes_max} bytes (presence_bytes_max); use presence_stats for the counts"
    )]
    PresenceTooLarge {
        /// The maximum size in bytes.
        bytes_max: usize,
    },
    /// The broker refused the request.
    #[error("broker refused the request: {reason}")]
    Refused {
        /// The reason that it gave.
        reason: String,
    },
    /// The broker did not answer within the deadline.
    #[error("broker did not answer within {deadline:?}")]
    Timeout {
        /// The deadline.
        deadline: Duration,
    },
}

impl BrokerError {
    pub(crate) fn away(reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Away { reason }
    }

    pub(crate) fn refused(reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Refused { reason }
    }

    pub(crate) fn shut_down() -> Self {
        Self::away("it was shut down")
    }
}
