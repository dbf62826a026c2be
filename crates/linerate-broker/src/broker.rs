//! What every broker can do.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use linerate_hub::ChannelName;

use crate::{
    event::LinkState,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
};

/// A future of a broker.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The broker of a node. What arrives goes to the [`Ingest`](crate::Ingest) that it was made with.
///
/// One contract suite (`tests/it/contract`) says what all brokers promise.
pub trait Broker: fmt::Debug + Send + Sync + 'static {
    /// Publishes in a channel; ready when the broker has taken it.
    ///
    /// # Errors
    /// The broker is away or refuses. Whether it was published is known only for
    /// [`BrokerError::Refused`].
    fn publish<'a>(
        &'a self,
        channel: &'a ChannelName,
        publish: Publish,
    ) -> BoxFuture<'a, Result<Published, BrokerError>>;

    /// Starts to receive what is published in a channel; ready when nothing published from now on is missed.
    ///
    /// Called once a channel and node, until [`unsubscribe`](Self::unsubscribe). While the broker is away it
    /// waits for it up to its deadline; once subscribed, reconnecting is the broker's business.
    ///
    /// # Errors
    /// The broker is away or refuses; then the channel is not subscribed.
    fn subscribe<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>>;

    /// Stops to receive what is published in a channel.
    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()>;

    /// Returns what the channel's stream holds, and its newest position.
    ///
    /// # Errors
    /// The broker is away, or the channel keeps no stream.
    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> BoxFuture<'a, Result<History, BrokerError>>;

    /// Forgets what the channel's stream holds; offsets go on.
    ///
    /// # Errors
    /// The broker is away, or the channel keeps no stream.
    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> BoxFuture<'a, Result<(), BrokerError>>;

    /// Sends a message of the nodes among themselves to all nodes, this one included.
    ///
    /// # Errors
    /// The broker is away or refuses.
    fn send_control(&self, message: Bytes) -> BoxFuture<'_, Result<(), BrokerError>>;

    /// Keeps something for all nodes, also those that start later, in the place of what has the same `id`. It may be
    /// forgotten at `expires_at`, in seconds since 1970; `None` for never.
    ///
    /// A broker that ends with its only node keeps nothing.
    ///
    /// # Errors
    /// The broker is away or refuses.
    fn keep<'a>(
        &'a self,
        _id: &'a str,
        _value: Bytes,
        _expires_at: Option<u64>,
    ) -> BoxFuture<'a, Result<(), BrokerError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns what nodes have asked to [`keep`](Self::keep).
    ///
    /// # Errors
    /// The broker is away or refuses.
    fn kept(&self) -> BoxFuture<'_, Result<Vec<Bytes>, BrokerError>> {
        Box::pin(std::future::ready(Ok(Vec::new())))
    }

    /// Says whether a subscription to `channel` may be a pattern, and it is one.
    fn is_pattern(&self, channel: &ChannelName) -> bool;

    /// Returns what kind of broker this is, for people.
    fn name(&self) -> &'static str;

    /// Writes something that nobody reads, as a durable publication is written: ready when the broker has taken it.
    ///
    /// # Errors
    /// The broker is away or refuses, as it refuses durable publications.
    fn probe_write(&self) -> BoxFuture<'_, Result<(), BrokerError>>;

    /// Returns how the link is, as the newest probe found it.
    fn link(&self) -> LinkState;

    /// Ends all tasks and connections.
    fn shut_down(&self) -> BoxFuture<'_, ()>;
}

/// Why a broker did not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// There is no link to the broker at the moment.
    #[error("broker is away: {reason}")]
    Away {
        /// What the last attempt to connect ended with.
        reason: String,
    },
    /// The channel keeps no stream.
    #[error("channel keeps no history")]
    NoHistory,
    /// A stream is not read because this node's memory is used up.
    #[error("server is short of memory, try again later")]
    Overloaded,
    /// More bytes than the broker carries.
    #[error("payload has {bytes} bytes; at most {bytes_max} are allowed")]
    PayloadTooLarge {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        bytes_max: usize,
    },
    /// The broker said no.
    #[error("broker refused: {reason}")]
    Refused {
        /// What it said.
        reason: String,
    },
    /// No answer within the deadline.
    #[error("broker did not answer within {deadline:?}")]
    Timeout {
        /// The deadline.
        deadline: Duration,
    },
}
