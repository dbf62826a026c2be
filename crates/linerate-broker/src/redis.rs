//! Redis: channels are Pub/Sub channels of the same names; durable channels also have a stream.
//!
//! **Plain channels** carry payloads unchanged; a `PUBLISH` by `redis-cli` arrives as it was sent.
//! Positions are this node's own ([`sequencer`](crate::sequencer)). **Durable channels** are
//! published in by one script, which numbers the publication, stores it in a stream and sends it in
//! an envelope (module `envelope`). A plain `PUBLISH` in such a channel also arrives, but without a
//! position. **Patterns** are subscriptions with `*`, `?` or `[` in their name.
//!
//! One connection subscribes (module `link`); in a cluster, one connection to each master does
//! (module `shards`). These connections run on the broker's own thread, or on that of a node's only
//! worker, and everything that one read returns goes to the node together. Another connection, made
//! by the crate `redis`, sends commands. Once a second the link publishes to itself through both
//! connections, and it counts as up only if that publication comes back. This detects a paused
//! server, a lost subscription or a node too busy to read within about three seconds. A lost link
//! is dialled again until it succeeds. Plain channels then get a new epoch and a gap. Durable
//! channels get the publications that the stream holds from the time between, and a gap only if
//! some are missing.
//!
//! An epoch of a stream ends when the server that stores it is restarted. A restarted server may
//! have lost its last writes (by default, append-only files are flushed once a second), and so may
//! a replica that takes over. Either would assign the lost offsets to other publications.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use linerate_hub::{ChannelName, ClientInfo, presence::Counts};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use self::{
    address::{Address, Topology},
    leases::Family,
    link::{Link, ORDERS_MAX, Order},
    registry::Part,
    shards::Shards,
    state::RedisState,
    subscriptions::{Subscription, SubscriptionKind, Target},
    tls::Trust,
};
use crate::{
    broker::{Answer, BoxFuture, Broker, BrokerError, check_history, check_payload},
    event::LinkState,
    ingest::Ingest,
    kind::BrokerKind,
    lock::lock,
    occupancy::OccupancyChange,
    options::BrokerOptions,
    presence::PresenceChange,
    registry::Beat,
    request::{History, HistoryRequest, Publish, Published, StreamOptions},
    runtime::BrokerThread,
};

mod address;
mod cluster;
mod commands;
mod delivery;
mod dial;
mod envelope;
mod epochs;
mod feed;
#[cfg(fuzzing)]
pub mod fuzzing;
mod health;
mod held;
mod input;
mod leases;
mod leasing;
mod link;
mod names;
mod occupancy;
mod presence;
mod registry;
mod resp;
mod shards;
mod state;
mod stream;
mod streams;
mod subscriptions;
mod tls;
mod writer;

pub use address::RedisUrlError;
pub use feed::{FeedEvent, FeedServer, FeedSink};
pub use names::literal;
pub use tls::TrustError;
pub use writer::{Entry, StreamWriter};

/// The name of the broker's thread.
const THREAD: &str = "broker-redis";

/// How long the key that a probe writes lives, in milliseconds.
const PROBE_TTL_MS: u32 = 60_000;

/// Redis, which `redis://…` and `rediss://…` name, also with `+sentinel` and `+cluster`.
pub const KIND: BrokerKind = BrokerKind {
    name: "redis",
    schemes: &["redis://", "rediss://"],
    is_embedded: false,
    start: |url, options, ingest| Ok(Arc::new(Redis::new(url, options, ingest)?)),
};

/// Redis, as the broker of a node.
#[derive(Debug)]
pub struct Redis {
    shared: Arc<RedisState>,
    orders: mpsc::Sender<Order>,
    is_shut_down: AtomicBool,
    thread: BrokerThread,
}

/// The reason why a Redis broker could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RedisError {
    /// The system could not start a thread.
    #[error("cannot start a thread for the Redis broker")]
    Thread(#[from] std::io::Error),
    /// There are no usable CA certificates.
    #[error("cannot set up TLS for Redis")]
    Trust(#[from] TrustError),
    /// The URL is malformed.
    #[error("invalid Redis URL")]
    Url(#[from] RedisUrlError),
}

impl Redis {
    /// Starts a broker for the service at `url`, on its own thread. It hands everything that
    /// arrives to `ingest`.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use linerate_broker::{BoxFuture, BrokerOptions, Event, Ingest, Redis};
    /// # struct Node;
    /// # impl Ingest for Node {
    /// #     fn ingest(&self, _: Vec<Event>) -> BoxFuture<'_, ()> { Box::pin(async {}) }
    /// # }
    /// let node = Arc::new(Node);
    /// let redis = Redis::new("redis://127.0.0.1:6379", BrokerOptions::default(), node)?;
    /// # Ok::<(), linerate_broker::redis::RedisError>(())
    /// ```
    ///
    /// This does not wait for a connection. Until there is one, the link is deaf.
    ///
    /// # Errors
    /// Returns an error if the URL is malformed, if there are no usable CA certificates, or if the
    /// system cannot start a thread.
    pub fn new(
        url: &str,
        options: BrokerOptions,
        ingest: Arc<dyn Ingest>,
    ) -> Result<Self, RedisError> {
        let address = Address::parse(url)?;
        let trust = match address.is_tls {
            true => Some(Arc::new(Trust::new(options.tls_authorities.as_deref())?)),
            false => None,
        };
        let (runtime, reader) = (BrokerThread::runtime()?, options.reader.clone());
        let shared = RedisState::new(address, trust, options, ingest, runtime.handle().clone());
        let shared = Arc::new(shared);
        let (orders, queue) = mpsc::channel(ORDERS_MAX);
        let links = links(Arc::clone(&shared), queue);
        let thread = match reader {
            None => BrokerThread::spawn(THREAD, runtime, links)?,
            // The thread remains for commands, which must outlive the worker.
            Some(reader) => {
                let thread = BrokerThread::spawn(THREAD, runtime, std::future::pending())?;
                thread.spawn_on(&reader, links);
                thread
            }
        };
        Ok(Self {
            shared,
            orders,
            is_shut_down: AtomicBool::new(false),
            thread,
        })
    }

    async fn subscribe(
        &self,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<(), BrokerError> {
        let (name, kind) = self.subscription(channel)?;
        let (waiter, ready) = oneshot::channel();
        let subscription = Subscription {
            kind,
            target: self.target(channel, kind, options),
            waiters: vec![waiter],
        };
        let deadline = self.shared.options.command_timeout;
        let subscribed = timeout(deadline, async {
            let order = Order::Subscribe(name.into_bytes().into(), subscription);
            let sent = self.orders.send(order).await;
            sent.map_err(|_| BrokerError::shut_down())?;
            ready
                .await
                .unwrap_or_else(|_| Err(BrokerError::shut_down()))
        });
        subscribed
            .await
            .unwrap_or_else(|_| Err(self.timeout_error(deadline)))
    }

    fn target(
        &self,
        channel: &ChannelName,
        kind: SubscriptionKind,
        options: StreamOptions,
    ) -> Target {
        let channel = channel.clone();
        if kind == SubscriptionKind::Pattern {
            let pattern = channel;
            return Target::Pattern { pattern, options };
        }
        if !options.has_stream() && options.size_max > 0 {
            // Publications that arrived too late for an earlier subscription belong to another
            // epoch.
            let mut sequencer = lock(&self.shared.sequencer);
            sequencer.close(channel.as_str());
            sequencer.hold(Instant::now(), &channel);
        }
        if options.has_stream() {
            self.shared.epochs.open(&channel);
        }
        Target::Channel {
            channel,
            options,
            newest: None,
            recovered: 0,
        }
    }

    async fn unsubscribe(&self, channel: &ChannelName) {
        if let Ok((name, kind)) = self.subscription(channel) {
            if kind != SubscriptionKind::Pattern {
                lock(&self.shared.sequencer).close(channel.as_str());
                self.shared.epochs.close(channel);
            }
            let order = Order::Unsubscribe(name.into_bytes().into());
            let _ = self.orders.send(order).await;
        }
    }

    /// Returns the Redis name of a channel or pattern, and how to subscribe to it.
    fn subscription(
        &self,
        channel: &ChannelName,
    ) -> Result<(String, SubscriptionKind), BrokerError> {
        match self.is_pattern(channel) {
            true => Ok((
                self.shared.names.pattern(channel),
                SubscriptionKind::Pattern,
            )),
            false => Ok((self.name(channel)?, self.shared.kind())),
        }
    }

    fn name(&self, channel: &ChannelName) -> Result<String, BrokerError> {
        self.check_running()?;
        self.shared.name(channel)
    }

    fn check_running(&self) -> Result<(), BrokerError> {
        match self.is_shut_down.load(Ordering::Relaxed) {
            true => Err(BrokerError::shut_down()),
            false => Ok(()),
        }
    }

    /// Returns the reason why a subscription did not complete within the deadline.
    fn timeout_error(&self, deadline: Duration) -> BrokerError {
        match self.shared.health.state() {
            LinkState::Deaf => BrokerError::away(lock(&self.shared.trouble)),
            LinkState::Up { .. } => BrokerError::Timeout { deadline },
        }
    }
}

impl Broker for Redis {
    fn publish<'a>(&'a self, channel: &'a ChannelName, publish: Publish) -> Answer<'a, Published> {
        Box::pin(async move {
            let bytes_max = self.shared.options.payload_bytes_max;
            check_payload(publish.payload.len(), bytes_max)?;
            let name = self.name(channel)?;
            match publish.options.has_stream() {
                true => self.shared.publish_durable(&name, &publish).await,
                false => self.shared.publish_plain(&name, &publish).await,
            }
        })
    }

    fn subscribe<'a>(&'a self, channel: &'a ChannelName, options: StreamOptions) -> Answer<'a, ()> {
        Box::pin(async move {
            let subscribed = self.subscribe(channel, options).await;
            if subscribed.is_err() {
                self.unsubscribe(channel).await;
            }
            subscribed
        })
    }

    fn unsubscribe<'a>(&'a self, channel: &'a ChannelName) -> BoxFuture<'a, ()> {
        Box::pin(self.unsubscribe(channel))
    }

    fn history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
        request: HistoryRequest,
    ) -> Answer<'a, History> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            match options.has_stream() {
                true => {
                    self.name(channel)?;
                    self.shared.history(channel, options, &request).await
                }
                false => {
                    let mut sequencer = lock(&self.shared.sequencer);
                    Ok(sequencer.history(Instant::now(), channel.as_str(), &request))
                }
            }
        })
    }

    fn remove_history<'a>(
        &'a self,
        channel: &'a ChannelName,
        options: StreamOptions,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            check_history(self, channel, options)?;
            if !options.has_stream() {
                lock(&self.shared.sequencer).remove_history(channel.as_str());
                return Ok(());
            }
            let name = self.name(channel)?;
            self.shared.remove_stream(&name).await
        })
    }

    fn send_control<'a>(&'a self, to: Option<&'a str>, message: Bytes) -> Answer<'a, ()> {
        Box::pin(async move {
            self.check_running()?;
            let mut command = ::redis::cmd(self.shared.scripts.word);
            command.arg(self.shared.names.control(to)).arg(&message[..]);
            self.shared.commands.query(&command).await
        })
    }

    fn node(&self) -> &str {
        &self.shared.node
    }

    fn beat(&self, details: Bytes) -> Answer<'_, Beat> {
        Box::pin(async move {
            let beat = self.shared.beat(&details).await?;
            let (are_held, ended) = self.shared.renew_leases().await?;
            if !ended.is_empty() {
                tokio::spawn(Arc::clone(&self.shared).sweep(ended));
            }
            Ok(Beat {
                has_lost_presence: !are_held,
                ..beat
            })
        })
    }

    fn deregister(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            self.shared.deregister().await?;
            self.shared.end_leases(Family::Occupancy).await?;
            self.shared.end_leases(Family::Presence).await
        })
    }

    fn nodes(&self) -> Answer<'_, Vec<String>> {
        Box::pin(self.shared.nodes(Part::Ids))
    }

    fn node_details(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(self.shared.nodes(Part::Details))
    }

    fn stores_presence(&self) -> bool {
        true
    }

    fn set_presence<'a>(&'a self, changes: &'a [PresenceChange]) -> Answer<'a, ()> {
        Box::pin(self.shared.set_presence(changes))
    }

    fn reset_presence(&self) -> Answer<'_, ()> {
        Box::pin(self.shared.end_leases(Family::Presence))
    }

    fn set_occupancy<'a>(&'a self, changes: &'a [OccupancyChange]) -> Answer<'a, Vec<bool>> {
        Box::pin(self.shared.set_occupancy(changes))
    }

    fn reset_occupancy(&self) -> Answer<'_, ()> {
        Box::pin(self.shared.end_leases(Family::Occupancy))
    }

    fn presence<'a>(
        &'a self,
        channel: &'a ChannelName,
        bytes_max: usize,
    ) -> Answer<'a, Vec<ClientInfo>> {
        Box::pin(async move { self.shared.present(&self.name(channel)?, bytes_max).await })
    }

    fn presence_counts<'a>(&'a self, channel: &'a ChannelName) -> Answer<'a, Counts> {
        Box::pin(async move { self.shared.present_counts(&self.name(channel)?).await })
    }

    fn keep<'a>(&'a self, id: &'a str, value: Bytes, expires_at: Option<u64>) -> Answer<'a, ()> {
        Box::pin(async move { self.shared.keep(id, &value, expires_at).await })
    }

    fn kept(&self) -> Answer<'_, Vec<Bytes>> {
        Box::pin(self.shared.kept())
    }

    fn put<'a>(&'a self, key: &'a str, value: Bytes, ttl: Duration) -> Answer<'a, ()> {
        Box::pin(async move { self.shared.put(key, &value, ttl).await })
    }

    fn take<'a>(&'a self, key: &'a str) -> Answer<'a, Option<Bytes>> {
        Box::pin(self.shared.take(key))
    }

    fn is_pattern(&self, channel: &ChannelName) -> bool {
        // Patterns do not match sharded publications, which go to only one node of a cluster.
        !self.shared.is_sharded && channel.as_str().contains(['*', '?', '['])
    }

    fn name(&self) -> &'static str {
        KIND.name
    }

    fn probe_write(&self) -> Answer<'_, ()> {
        Box::pin(async move {
            let key = self.shared.names.probe(&self.shared.node, 0);
            let mut command = ::redis::cmd("SET");
            command.arg(key).arg("").arg("PX").arg(PROBE_TTL_MS);
            self.shared.commands.query(&command).await
        })
    }

    fn link(&self) -> LinkState {
        match self.is_shut_down.load(Ordering::Relaxed) {
            true => LinkState::Deaf,
            false => self.shared.health.state(),
        }
    }

    fn shut_down(&self) -> BoxFuture<'_, ()> {
        self.is_shut_down.store(true, Ordering::Relaxed);
        self.thread.stop();
        Box::pin(std::future::ready(()))
    }
}

/// Maintains the links that the service needs: one, or one to each master of a cluster.
async fn links(shared: Arc<RedisState>, orders: mpsc::Receiver<Order>) {
    match shared.commands.topology() {
        Topology::Cluster {
            nodes,
            is_sharded: true,
        } => {
            let nodes = nodes.clone();
            Shards::new(shared, nodes, orders).run().await;
        }
        Topology::Cluster { .. } | Topology::Sentinel { .. } | Topology::Single(_) => {
            let probe = shared.names.probe(&shared.node, 0);
            let mut link = Link::new(Arc::clone(&shared), 0, None, probe, orders, None);
            for name in shared.control_names() {
                link.listen(name, Target::Control);
            }
            link.run().await;
        }
    }
}
