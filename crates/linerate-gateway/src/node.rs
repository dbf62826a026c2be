//! A node: one process of the service, its workers, and their shared state.
//!
//! ```text
//! broker ─► Dispatcher ─► inbox of each worker with subscribers ─► hub ─► Outlet of each client
//! ```
//!
//! Create the dispatcher first, because the broker needs it; then the broker; then the node, which
//! needs both; then each worker on its thread. Client work runs on the thread of the client's
//! worker. Work that involves the broker or other nodes runs on the runtime that the node is
//! started on.

mod accounts;
mod ask;
mod cluster;
mod counts;
mod dispatch;
mod emulation;
mod histories;
mod inbox;
mod inboxes;
mod interest;
mod labels;
mod namespaces;
pub(crate) mod outlet;
mod overload;
mod presence;
mod publisher;
mod reads;
mod recovered;
mod reports;
mod revoke;
mod routes;
mod shard;
mod subscribe;
mod subscription;
mod tally;
mod timeline;
mod turn;
mod worker;
mod writes;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use linerate_broker::Broker;
use linerate_budget::Budget;
use linerate_hub::{ChannelName, EncodingId, HubOptions};
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    auth::Revocations,
    config::{FilterOptions, Namespaces},
    protocol::{Block, encoding::Encoder},
};
use accounts::Accounts;
pub use cluster::message::NodeInfo;
pub(crate) use cluster::message::Whom;
use cluster::{Cluster, message::Body};
pub(crate) use counts::{Counts, Dialect};
pub(crate) use dispatch::{Control, Dispatcher};
pub(crate) use emulation::{EmulateError, Emulation, Emulations};
use histories::Histories;
use inboxes::Inboxes;
use interest::Interests;
use namespaces::NamespaceTable;
pub(crate) use outlet::{Connection, Notice, Outlet};
use presence::People;
use publisher::Publisher;
pub(crate) use recovered::{fitting, weight};
pub(crate) use revoke::RevokeError;
pub(crate) use revoke::now as seconds_now;
pub(crate) use routes::Traffic;
pub(crate) use shard::Shard;
pub(crate) use subscribe::{Prepared, SubscribeError};
pub(crate) use subscription::{From, Recovery, Subscribe};
use tally::Tallies;
pub(crate) use tally::Tally;
pub(crate) use timeline::{Change, Entry, Timeline};
pub(crate) use worker::Worker;

/// The fan-out of a worker.
type Hub = linerate_hub::Hub<Arc<Block>>;

/// The options of a node.
#[derive(Debug)]
pub(crate) struct NodeOptions {
    /// The display name of the node.
    pub name: String,
    /// The encodings that subscriptions may use; the index is the ID.
    pub encodings: Vec<Arc<Encoder>>,
    /// The encoding of tails, which administrators read. Its ID follows those of `encodings`.
    pub tail_encoding: Arc<Encoder>,
    /// The options of channels; [`NamespaceTable::replace`] changes them.
    pub namespaces: Namespaces,
    /// How long a channel stays subscribed at the broker after its last subscriber has left.
    pub linger: Duration,
    /// The maximum number of token revocations that the node remembers.
    pub revocations_max: usize,
    /// The limits on filters.
    pub filter: FilterOptions,
}

/// A node of the service.
#[derive(Debug)]
pub(crate) struct Node {
    /// The histories of channels.
    pub(crate) histories: Histories,
    /// The options of channels.
    pub(crate) namespaces: Arc<NamespaceTable>,
    /// Publishes to channels.
    pub(crate) publisher: Publisher,
    id: String,
    options: NodeOptions,
    started: Instant,
    dispatcher: Arc<Dispatcher>,
    broker: Arc<dyn Broker>,
    interests: Arc<Interests>,
    cluster: Cluster,
    revocations: Revocations,
    /// True once the revocations stored by the broker have been read.
    knows_revocations: watch::Sender<bool>,
    people: People,
    emulations: Emulations,
    counts: Counts,
    tallies: Arc<Tallies>,
    is_draining: watch::Sender<bool>,
    runtime: Handle,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Node {
    /// Starts a node. Its tasks, which serve all workers, run on `runtime`.
    pub(crate) fn start(
        options: NodeOptions,
        (dispatcher, control): (Arc<Dispatcher>, Control),
        broker: Arc<dyn Broker>,
        runtime: Handle,
    ) -> Arc<Self> {
        let interests = Interests::new(broker.clone(), runtime.clone(), options.linger);
        let budget = dispatcher.budget().clone();
        let namespaces = Arc::new(NamespaceTable::new(options.namespaces.clone()));
        dispatcher.name_broker(broker.name());
        let node = Arc::new(Self {
            id: uuid::Uuid::new_v4().to_string(),
            revocations: Revocations::new(options.revocations_max),
            knows_revocations: watch::Sender::new(false),
            options,
            started: Instant::now(),
            histories: Histories::new(broker.clone(), budget, runtime.clone()),
            publisher: Publisher::new(broker.clone(), namespaces.clone(), runtime.clone()),
            namespaces,
            tallies: Arc::new(Tallies::new(dispatcher.inboxes.count())),
            dispatcher,
            broker,
            interests,
            cluster: Cluster::new(),
            people: People::default(),
            emulations: Emulations::default(),
            counts: Counts::default(),
            is_draining: watch::Sender::new(false),
            runtime,
            tasks: Mutex::default(),
        });
        node.spawn(node.interests.clone().run());
        node.spawn(node.clone().run_announcements());
        node.spawn(node.clone().run_control(control));
        node.spawn(node.clone().run_moves());
        node.spawn(node.clone().run_overload());
        node.spawn(node.clone().run_revocations());
        node
    }

    /// Asks for the node's clients to be disconnected, as before a shutdown.
    pub(crate) fn drain(&self) {
        self.is_draining.send_replace(true);
    }

    /// Cancels [`drain`](Self::drain). Clients that are still connected may stay.
    pub(crate) fn undrain(&self) {
        self.is_draining.send_replace(false);
    }

    /// Tells the other nodes that this one leaves, and ends the tasks of the node and its broker.
    pub(crate) async fn shut_down(&self) {
        self.say(Body::Goodbye).await;
        self.abort_tasks();
        self.broker.shut_down().await;
    }

    /// Creates the worker with this index, counted from 0. Call this once per index, on the
    /// worker's thread.
    ///
    /// # Panics
    /// The dispatcher was created for fewer workers.
    pub(crate) fn worker(self: &Arc<Self>, index: u16) -> Worker {
        let mut encodings = self.options.encodings.clone();
        encodings.push(self.options.tail_encoding.clone());
        let accounts = Accounts::new(self.budget());
        let hub = Hub::new(HubOptions {
            encodings,
            seed: rand::random(),
            blocks: accounts.blocks.clone(),
            channel_filters_max: self.options.filter.channel_filters_max,
            channel_searches_max: self.options.filter.channel_searches_max,
            client_filters_max: self.options.filter.client_filters_max,
            ..HubOptions::default()
        });
        Worker::new(self.clone(), index, hub, accounts)
    }

    /// Returns the ID of this run of the node, unique in the cluster.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time since the node was started.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns a summary of the node's state.
    pub(crate) fn info(&self) -> NodeInfo {
        NodeInfo {
            id: self.id.clone(),
            name: self.options.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.uptime().as_secs(),
            clients: self.counts.clients(),
            users: self.counts.users(),
            subscriptions: self.counts.subscriptions(),
            channels: self.dispatcher.routes.count() as u64,
        }
    }

    /// Returns the channels with subscribers on this node, and their traffic.
    pub(crate) fn traffic(&self) -> Vec<(ChannelName, Traffic)> {
        self.dispatcher.routes.traffic()
    }

    /// Returns the numbers of clients, users and subscriptions.
    pub(crate) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the sessions whose commands arrive in separate requests.
    pub(crate) fn emulations(&self) -> &Emulations {
        &self.emulations
    }

    /// Returns a receiver that is true while clients are to be disconnected.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.is_draining.subscribe()
    }

    /// Returns the broker.
    pub(crate) fn broker(&self) -> &Arc<dyn Broker> {
        &self.broker
    }

    /// Returns the history of the link to the broker.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.dispatcher.timeline
    }

    /// Returns the memory budget of the node.
    pub(crate) fn budget(&self) -> &Budget {
        self.dispatcher.budget()
    }

    /// Returns the dispatcher, which receives the events of the broker.
    pub(crate) fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Returns the inboxes of the workers.
    pub(crate) fn inboxes(&self) -> &Inboxes {
        &self.dispatcher.inboxes
    }

    /// Returns the encoding of tails.
    pub(crate) fn tail_encoding(&self) -> EncodingId {
        // There are far fewer than 255 encodings; the hub refuses an ID that it does not know.
        EncodingId(u8::try_from(self.options.encodings.len()).unwrap_or(u8::MAX))
    }

    fn interests(&self) -> &Arc<Interests> {
        &self.interests
    }

    /// Runs a long task outside the workers, on the node's runtime.
    pub(crate) fn spawn_task<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(task)
    }

    pub(crate) fn abort_tasks(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        for task in tasks.drain(..) {
            task.abort();
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime.spawn(task).abort_handle();
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.push(task);
    }
}

#[cfg(test)]
pub(crate) mod tests;
