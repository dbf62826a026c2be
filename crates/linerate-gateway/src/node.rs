//! A node: one process of the service, its workers, and what they share.
//!
//! ```text
//! broker ─► Dispatcher ─► inbox of each worker with subscribers ─► hub ─► Outlet of each client
//! ```
//!
//! The dispatcher is made first, since the broker needs it; then the broker; then the node, which needs
//! both; then each worker on its thread. What concerns a client happens on its worker's thread; what
//! concerns the broker or other nodes on the runtime that the node is started on.

mod accounts;
mod ask;
mod cluster;
mod counts;
mod dispatch;
mod emulation;
mod history;
mod inbox;
mod interest;
mod labels;
pub mod outlet;
mod overload;
mod presence;
mod reads;
mod recovered;
mod reports;
mod revoke;
mod routes;
mod subscribe;
mod tally;
mod timeline;
mod turn;
mod worker;
mod writes;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use linerate_broker::{Broker, BrokerError, Publish, Published};
use linerate_budget::{Account, Budget, Consumer};
use linerate_hub::{ChannelName, EncodingId, HubOptions};
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    admin::TailEncoding,
    auth::Revocations,
    config::{FilterOptions, Namespaces},
    metrics::PublishDurations,
    protocol::{Block, encoding::Encoder},
};
use accounts::Accounts;
pub use ask::{PresenceStats, PresenceTooLarge};
pub use cluster::message::{NodeInfo, Whom};
use cluster::{Cluster, message::Body};
pub use counts::{Counts, Dialect};
pub use dispatch::{Arrived, Control, Dispatcher};
pub use emulation::{EmulateError, Emulation, Emulations};
use interest::Interests;
use labels::Labels;
pub use outlet::{Connection, Notice, Outlet};
pub(crate) use overload::most_of;
use presence::People;
use reads::Reads;
pub(crate) use recovered::{fitting, weight};
pub use revoke::RevokeError;
pub(crate) use revoke::now as seconds_now;
pub use routes::Traffic;
pub use subscribe::{From, Prepared, Recovery, Subscribe, SubscribeError, Subscribed};
use tally::Tallies;
pub use tally::Tally;
pub use timeline::{Change, Entry, Timeline};
pub use worker::Worker;
pub use writes::Writes;

/// The fan-out of a worker.
type Hub = linerate_hub::Hub<Arc<Block>>;

/// What a node is started with.
#[derive(Debug)]
pub struct NodeOptions {
    /// What the node is called, for people.
    pub name: String,
    /// The encodings that subscriptions may ask for, by their index.
    pub encodings: Vec<Arc<Encoder>>,
    /// Which options channels have; [`Node::set_namespaces`] changes them.
    pub namespaces: Namespaces,
    /// How long a channel stays subscribed at the broker after its last subscriber has left.
    pub linger: Duration,
    /// Revocations of tokens that are remembered.
    pub revocations_max: usize,
    /// How many filters there may be.
    pub filter: FilterOptions,
}

/// A process of the service.
#[derive(Debug)]
pub struct Node {
    id: String,
    options: NodeOptions,
    started: Instant,
    namespaces: ArcSwap<Namespaces>,
    dispatcher: Arc<Dispatcher>,
    broker: Arc<dyn Broker>,
    interests: Arc<Interests>,
    reads: Arc<Reads>,
    cluster: Cluster,
    revocations: Revocations,
    /// Whether what the broker keeps was read.
    knows_revocations: watch::Sender<bool>,
    people: People,
    emulations: Emulations,
    counts: Counts,
    labels: Labels,
    tallies: Tallies,
    publishes: PublishDurations,
    /// Counts publications that were read of streams.
    histories: Account,
    writes: Arc<Writes>,
    is_draining: watch::Sender<bool>,
    runtime: Handle,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Node {
    /// Starts a node, whose tasks for all workers run on `runtime`.
    pub fn start(
        options: NodeOptions,
        (dispatcher, control): (Arc<Dispatcher>, Control),
        broker: Arc<dyn Broker>,
        runtime: Handle,
    ) -> Arc<Self> {
        let interests = Interests::new(broker.clone(), runtime.clone(), options.linger);
        let histories = dispatcher.budget().account(Consumer::Histories);
        let reads = Reads::new(runtime.clone(), {
            let (broker, histories) = (broker.clone(), histories.clone());
            let budget = dispatcher.budget().clone();
            move |channel, stream, request| {
                let (broker, histories) = (broker.clone(), histories.clone());
                let checked = accounts::check_read(&budget, stream, &request);
                Box::pin(async move {
                    checked?;
                    let history = broker.history(&channel, stream, request).await?;
                    Ok(accounts::counted(history, &histories))
                })
            }
        });
        let namespaces = options.namespaces.clone();
        dispatcher.name_broker(broker.name());
        let writes = Writes::new(broker.clone(), runtime.clone());
        let node = Arc::new(Self {
            id: uuid::Uuid::new_v4().to_string(),
            revocations: Revocations::new(options.revocations_max),
            knows_revocations: watch::Sender::new(false),
            options,
            started: Instant::now(),
            namespaces: ArcSwap::from_pointee(namespaces),
            tallies: Tallies::new(dispatcher.inboxes.len()),
            dispatcher,
            broker,
            interests,
            reads,
            cluster: Cluster::new(),
            people: People::default(),
            emulations: Emulations::default(),
            counts: Counts::default(),
            labels: Labels::default(),
            publishes: PublishDurations::default(),
            histories,
            writes,
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

    /// Asks for the node's clients to be sent away, as before it stops.
    pub fn drain(&self) {
        self.is_draining.send_replace(true);
    }

    /// Lets clients stay again, those who have not been sent away yet.
    pub fn undrain(&self) {
        self.is_draining.send_replace(false);
    }

    /// Says goodbye to the other nodes, and ends the tasks of the node and its broker.
    pub async fn shut_down(&self) {
        self.say(Body::Goodbye).await;
        self.abort_tasks();
        self.broker.shut_down().await;
    }

    /// Makes the worker of this index, from 0. Called once an index, on the worker's thread.
    ///
    /// # Panics
    /// The dispatcher was made for fewer workers.
    pub fn worker(self: &Arc<Self>, index: u16) -> Worker {
        let mut encodings = self.options.encodings.clone();
        encodings.push(Arc::new(TailEncoding));
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

    /// Publishes in a channel.
    ///
    /// # Errors
    /// The broker is away or refuses.
    pub async fn publish(
        &self,
        channel: &ChannelName,
        publish: Publish,
    ) -> Result<Published, BrokerError> {
        let since = Instant::now();
        let is_durable = publish.options.is_durable;
        let published = self.broker.publish(channel, publish).await;
        if let (true, Err(error)) = (is_durable, &published) {
            self.writes.failed(error);
        }
        let label = self.label_of(channel);
        let namespace = self.labels.name(label);
        self.publishes
            .observe(namespace, published.is_ok(), since.elapsed());
        published
    }

    /// Gives channels other options from now on; subscriptions keep theirs.
    pub fn set_namespaces(&self, namespaces: Namespaces) {
        self.namespaces.store(Arc::new(namespaces));
    }

    /// Returns which options channels have.
    pub fn namespaces(&self) -> Arc<Namespaces> {
        self.namespaces.load_full()
    }

    /// Returns the name of this incarnation of the node, unique in the cluster.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what the node is called, for people.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Returns how long the node has been there.
    pub fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns how the node is.
    pub fn info(&self) -> NodeInfo {
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

    /// Returns the channels with subscribers here, and what was published in them.
    pub fn traffic(&self) -> Vec<(ChannelName, Traffic)> {
        self.dispatcher.routes.traffic()
    }

    /// Returns how many clients, users and subscriptions there are.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the sessions that take commands from elsewhere.
    pub fn emulations(&self) -> &Emulations {
        &self.emulations
    }

    /// Returns whether clients are to be sent away, and when that changes.
    pub fn draining(&self) -> watch::Receiver<bool> {
        self.is_draining.subscribe()
    }

    /// Returns the broker.
    pub fn broker(&self) -> &Arc<dyn Broker> {
        &self.broker
    }

    /// Returns how the link to the broker was.
    pub fn timeline(&self) -> &Timeline {
        &self.dispatcher.timeline
    }

    /// Returns what the node's memory is counted in.
    pub fn budget(&self) -> &Budget {
        self.dispatcher.budget()
    }

    /// Returns what takes in what the broker tells.
    pub fn dispatcher(&self) -> &Arc<Dispatcher> {
        &self.dispatcher
    }

    /// Returns whether the broker takes durable publications.
    pub fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Returns how long the broker took to publish.
    pub(crate) fn publishes(&self) -> &PublishDurations {
        &self.publishes
    }

    /// Returns the name of the namespace whose channels have `label` in what the hubs count.
    pub(crate) fn namespace(&self, label: u16) -> Arc<str> {
        self.labels.name(label)
    }

    /// Returns the number under which a channel is counted.
    fn label_of(&self, channel: &ChannelName) -> u16 {
        self.labels.number(self.namespaces.load().label(channel))
    }

    /// Returns the encoding of tails, which stands behind those of the clients.
    pub(crate) fn tail_encoding(&self) -> EncodingId {
        // Nobody has 255 encodings; the hub refuses one that it does not have.
        EncodingId(u8::try_from(self.options.encodings.len()).unwrap_or(u8::MAX))
    }

    fn interests(&self) -> &Arc<Interests> {
        &self.interests
    }

    fn reads(&self) -> &Arc<Reads> {
        &self.reads
    }

    /// Does something that takes long beside the workers.
    pub(crate) fn spawn_task<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(task)
    }

    fn abort_tasks(&self) {
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
