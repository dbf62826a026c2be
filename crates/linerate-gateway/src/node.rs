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
mod all_nodes;
mod cluster;
mod control;
mod counts;
mod counts_teller;
mod detached;
mod dispatch;
mod emission;
mod emulation;
mod entries;
mod flights;
mod histories;
mod inbox;
mod inboxes;
pub(crate) mod intake;
mod interest;
mod labels;
mod moves;
mod namespaces;
mod occupancy;
pub(crate) mod outlet;
mod overload;
mod polling;
mod polls;
mod presence;
mod publisher;
mod publishing;
mod reads;
mod recovered;
mod reports;
mod responder;
mod revocations;
mod routes;
mod shard;
mod shared_texts;
mod source_gaps;
pub(crate) mod splice;
mod status;
mod subscribe;
mod subscription;
mod subscription_counts;
mod tally;
mod telling;
mod timeline;
mod traffic;
mod trail;
mod turn;
mod waiting;
mod worker;
mod writes;

use std::{sync::Arc, time::Duration};

use linerate_broker::{Broker, BrokerError, StreamOptions};
use linerate_budget::Budget;
use linerate_hub::{ChannelName, EncodingId, HubOptions};
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::watch,
    task::{AbortHandle, JoinHandle},
};

use crate::{
    config::{FilterOptions, Namespaces},
    producer::Producers,
    protocol::{Block, Encoder},
    webhook::{Endpoint, Webhooks},
};
pub(crate) use accounts::Accounts;
use all_nodes::AllNodes;
use cluster::Cluster;
pub(crate) use cluster::message::{ClientRecord, ConnectionSelector};
use control::ControlHandler;
pub(crate) use counts::Counts;
use counts_teller::CountsTeller;
use detached::DetachedSessions;
pub(crate) use detached::ENTRY_BYTES;
pub(crate) use dispatch::{Control, Dispatcher};
pub(crate) use emission::{Audience, Emission};
pub(crate) use emulation::{EmulateError, Emulation, Emulations};
use entries::Entries;
use histories::Histories;
use inboxes::Inboxes;
pub(crate) use interest::InterestGuard;
use interest::Interests;
pub(crate) use moves::{Direction, Moves};
use namespaces::NamespaceTable;
use occupancy::Occupancy;
pub(crate) use outlet::{Connection, Notice, Outlet, client_with_id, new_client};
use overload::Overload;
pub(crate) use polling::{Incoming, PollLimits, PolledSession, PolledSessions, Probe};
use presence::Presence;
use publisher::Publisher;
pub use publishing::PublishError;
pub(crate) use recovered::{fitting, weight};
use responder::Responder;
use revocations::ClusterRevocations;
pub(crate) use revocations::{RevokeError, now as seconds_now};
pub(crate) use shard::Shard;
use source_gaps::SourceGaps;
pub use status::NodeInfo;
use status::Status;
pub(crate) use subscribe::{Prepared, SubscribeError};
pub(crate) use subscription::{Delivery, Recovery, StartPosition, Subscribe};
use subscription_counts::SubscriptionCounts;
use tally::Tallies;
pub(crate) use tally::Tally;
pub(crate) use timeline::{Change, Entry};
pub(crate) use traffic::Traffic;
pub(crate) use trail::Trail;
pub(crate) use worker::{WaitingClient, Worker};

/// How long a node that ends waits for the broker to store the state of sessions.
const DETACHED_FLUSH_MAX: Duration = Duration::from_secs(2);

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
    /// The seed for what a node does at random times.
    pub seed: u64,
    /// How long a channel stays subscribed at the broker after its last subscriber has left.
    pub linger: Duration,
    /// The maximum number of token revocations that the node remembers.
    pub revocations_max: usize,
    /// The limits on filters.
    pub filter: FilterOptions,
}

/// A node of the service, composed of parts with one responsibility each. Callers use the part that
/// they need.
#[derive(Debug)]
pub(crate) struct Node {
    /// Asks all nodes, and tells them what to do.
    pub(crate) all_nodes: AllNodes,
    /// The broker.
    pub(crate) broker: Arc<dyn Broker>,
    /// The memory budget.
    pub(crate) budget: Budget,
    /// The other nodes.
    pub(crate) cluster: Arc<Cluster>,
    /// The numbers of clients, users and subscriptions.
    pub(crate) counts: Arc<Counts>,
    /// The state of sessions whose clients may return.
    pub(crate) detached: DetachedSessions,
    /// Receives the events of the broker.
    pub(crate) dispatcher: Arc<Dispatcher>,
    /// The sessions whose commands arrive in separate requests.
    pub(crate) emulations: Emulations,
    /// The histories of channels.
    pub(crate) histories: Histories,
    /// The inboxes of the workers.
    pub(crate) inboxes: Inboxes,
    /// The options of channels.
    pub(crate) namespaces: Arc<NamespaceTable>,
    /// Tells webhooks which channels have subscribers and members.
    pub(crate) occupancy: Arc<Occupancy>,
    /// The sessions whose clients poll.
    pub(crate) polled: PolledSessions,
    /// Writes publications to Kafka.
    pub(crate) producers: Producers,
    /// Publishes to channels, also for sources.
    pub(crate) publisher: Publisher,
    /// Answers requests to this node alone.
    pub(crate) responder: Arc<Responder>,
    /// How many subscriptions channels have, as Pusher clients and webhooks are told.
    pub(crate) subscription_counts: Arc<SubscriptionCounts>,
    /// The token revocations.
    pub(crate) revocations: Arc<ClusterRevocations>,
    /// What the node tells about itself.
    pub(crate) status: Arc<Status>,
    /// The encoding of tails.
    pub(crate) tail_encoding: EncodingId,
    /// The counters of the workers' hubs.
    pub(crate) tallies: Tallies,
    encodings: Vec<Arc<Encoder>>,
    filter: FilterOptions,
    interests: Arc<Interests>,
    pub(crate) presence: Arc<Presence>,
    source_gaps: Arc<SourceGaps>,
    pub(crate) webhooks: Arc<Webhooks>,
    is_draining: watch::Sender<bool>,
    runtime: Handle,
    seed: u64,
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
        dispatcher.name_broker(broker.name());
        let (budget, inboxes) = (dispatcher.budget().clone(), dispatcher.inboxes.clone());
        let namespaces = Arc::new(NamespaceTable::new(options.namespaces));
        let counts = Arc::new(Counts::default());
        let id = broker.node().to_owned();
        let status = Status::new(id, options.name, counts.clone(), dispatcher.clone());
        let status = Arc::new(status);
        let entries = Arc::new(Entries::new(broker.clone()));
        let webhooks = Webhooks::new(broker.node(), budget.clone(), runtime.clone());
        let webhooks = Arc::new(webhooks);
        let occupancy = Occupancy::new(broker.clone(), webhooks.clone(), &budget);
        let occupancy = Arc::new(occupancy);
        let stored = (entries, occupancy.clone());
        let subscription_counts = SubscriptionCounts::new(broker.node(), &budget);
        let subscription_counts = Arc::new(subscription_counts);
        let cluster = Cluster::new(
            status.clone(),
            broker.clone(),
            stored.clone(),
            subscription_counts.clone(),
        );
        let cluster = Arc::new(cluster);
        let presence = Presence::new(broker.clone(), stored, inboxes.clone(), cluster.clone());
        let presence = Arc::new(presence);
        let emulations = Emulations::default();
        let polled = PolledSessions::default();
        let source_gaps = Arc::new(SourceGaps::default());
        let responder = Arc::new(Responder {
            dispatcher: dispatcher.clone(),
            emulations: emulations.clone(),
            inboxes: inboxes.clone(),
            namespaces: namespaces.clone(),
            polled: polled.clone(),
            source_gaps: source_gaps.clone(),
        });
        let revocations = Arc::new(ClusterRevocations::new(
            options.revocations_max,
            broker.clone(),
            inboxes.clone(),
            cluster.clone(),
        ));
        // There are far fewer than 255 encodings; the hub refuses an ID that it does not know.
        let tail_encoding = u8::try_from(options.encodings.len()).unwrap_or(u8::MAX);
        let mut encodings = options.encodings;
        encodings.push(options.tail_encoding);
        let node = Arc::new(Self {
            all_nodes: AllNodes {
                cluster: cluster.clone(),
                namespaces: namespaces.clone(),
                presence: presence.clone(),
                responder: responder.clone(),
            },
            histories: Histories::new(broker.clone(), budget.clone(), runtime.clone()),
            producers: Producers::new(budget.clone()),
            publisher: Publisher::new(broker.clone(), namespaces.clone(), runtime.clone()),
            detached: DetachedSessions::new(
                broker.clone(),
                budget.clone(),
                inboxes.clone(),
                runtime.clone(),
            ),
            interests: Interests::new(broker.clone(), runtime.clone(), options.linger),
            tail_encoding: EncodingId(tail_encoding),
            tallies: Tallies::new(inboxes.clone()),
            webhooks,
            filter: options.filter,
            seed: options.seed,
            is_draining: watch::Sender::new(false),
            tasks: Mutex::default(),
            broker,
            budget,
            cluster,
            counts,
            dispatcher,
            emulations,
            encodings,
            inboxes,
            namespaces,
            occupancy,
            polled,
            presence,
            responder,
            revocations,
            runtime,
            source_gaps,
            status,
            subscription_counts,
        });
        node.spawn_parts(control);
        node
    }

    /// Runs the parts that do something of their own accord.
    fn spawn_parts(&self, control: Control) {
        let handler = ControlHandler {
            cluster: self.cluster.clone(),
            occupancy: self.occupancy.clone(),
            presence: self.presence.clone(),
            responder: self.responder.clone(),
            revocations: self.revocations.clone(),
            runtime: self.runtime.clone(),
            subscription_counts: self.subscription_counts.clone(),
        };
        let counts_teller = CountsTeller {
            cluster: self.cluster.clone(),
            counts: self.subscription_counts.clone(),
            inboxes: self.inboxes.clone(),
            webhooks: self.webhooks.clone(),
        };
        let overload = Overload {
            budget: self.budget.clone(),
            inboxes: self.inboxes.clone(),
        };
        self.spawn(self.interests.clone().run());
        self.spawn(self.cluster.clone().run_beats());
        self.spawn(handler.run(control));
        self.spawn(counts_teller.run());
        self.spawn(self.occupancy.clone().run());
        self.spawn(self.presence.clone().run());
        self.spawn(self.presence.clone().run_entries());
        self.spawn(overload.run());
        self.spawn(self.revocations.clone().run());
    }

    /// Creates the worker with this index, counted from 0. Call this once per index, on the
    /// worker's thread.
    ///
    /// # Panics
    /// The dispatcher was created for fewer workers.
    pub(crate) fn worker(self: &Arc<Self>, index: u16) -> Worker {
        let accounts = Accounts::new(&self.budget);
        let hub = Hub::new(HubOptions {
            encodings: self.encodings.clone(),
            seed: self.seed.wrapping_add(index.into()),
            blocks: accounts.blocks.clone(),
            channel_filters_max: self.filter.channel_filters_max,
            channel_searches_max: self.filter.channel_searches_max,
            client_filters_max: self.filter.client_filters_max,
            ..HubOptions::default()
        });
        Worker::new(self.clone(), index, hub, accounts)
    }

    /// Subscribes to a channel at the broker until the result is dropped.
    ///
    /// # Errors
    /// The broker is unavailable or refuses.
    pub(crate) async fn hold(
        &self,
        channel: &ChannelName,
        options: StreamOptions,
    ) -> Result<InterestGuard, BrokerError> {
        self.interests.hold(channel, options).await
    }

    /// Replaces the webhooks. They are told of channels that are occupied already, unless others
    /// were told before.
    pub(crate) fn replace_webhooks(&self, endpoints: &[Arc<Endpoint>]) {
        self.webhooks.replace(endpoints);
        if !self.occupancy.follow_webhooks() {
            return;
        }
        self.presence.report_members();
        let (occupancy, inboxes) = (self.occupancy.clone(), self.inboxes.clone());
        self.spawn_task(async move {
            let reported = inboxes.run(move |shard| shard.report_channels(&occupancy));
            let missing = inboxes.count() - reported.await.len();
            if missing > 0 {
                tracing::warn!(
                    workers = missing,
                    "workers are busy; webhooks are not told of their occupied channels"
                );
            }
        });
    }

    /// Switches on or off that Pusher clients and webhooks are told how many subscriptions channels
    /// have.
    pub(crate) fn switch_subscription_counts(&self, is_on: bool) {
        if self.subscription_counts.switch(is_on) {
            let (counts, inboxes) = (self.subscription_counts.clone(), self.inboxes.clone());
            self.spawn_task(async move {
                inboxes.run(move |shard| shard.report_counts(&counts)).await;
            });
        }
    }

    /// Asks for the node's clients to be disconnected, as before a shutdown.
    pub(crate) fn drain(&self) {
        self.is_draining.send_replace(true);
    }

    /// Cancels [`drain`](Self::drain). Clients that are still connected may stay.
    pub(crate) fn undrain(&self) {
        self.is_draining.send_replace(false);
    }

    /// Returns a receiver that is true while clients are to be disconnected.
    pub(crate) fn draining(&self) -> watch::Receiver<bool> {
        self.is_draining.subscribe()
    }

    /// Tells the other nodes that this one leaves, and ends the tasks of the node and its broker.
    pub(crate) async fn shut_down(&self) {
        self.abort_tasks();
        self.detached.flush(DETACHED_FLUSH_MAX).await;
        self.cluster.leave().await;
        self.broker.shut_down().await;
    }

    /// Runs a long task outside the workers, on the node's runtime.
    pub(crate) fn spawn_task<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.spawn(task)
    }

    /// Returns the runtime for what is not the work of a worker.
    pub(crate) const fn runtime(&self) -> &Handle {
        &self.runtime
    }

    pub(crate) fn abort_tasks(&self) {
        let mut tasks = self.tasks.lock();
        for task in tasks.drain(..) {
            task.abort();
        }
    }

    /// Runs a task on the node's runtime until the node shuts down.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let task = self.runtime.spawn(task).abort_handle();
        let mut tasks = self.tasks.lock();
        tasks.push(task);
    }
}

#[cfg(test)]
pub(crate) mod tests;
