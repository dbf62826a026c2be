//! The nodes of a service as a cluster: membership, and surveys of other nodes.
//!
//! The broker has a registry of nodes. A node renews its lease every few seconds, and learns from
//! the answer whether the registry has as many nodes as it knows. A survey asks other nodes, and
//! waits for the answers of those that are known, up to a deadline.

pub(crate) mod members;
pub(crate) mod message;
pub(crate) mod surveys;

use std::{sync::Arc, time::Duration};

use futures_util::FutureExt;
use linerate_broker::{Beat, Broker, BrokerError};
use parking_lot::{Mutex, MutexGuard};
use tracing::{debug, warn};

use super::{
    entries::Entries,
    flights::Flights,
    occupancy::Occupancy,
    status::{NodeInfo, Status},
    subscription_counts::SubscriptionCounts,
};
use crate::clock::now;
use members::{BEAT_INTERVAL, Members};
use message::{Answer, Body, Message, NodeRequest};
use surveys::{SurveyKind, Surveys, TooMany};

/// How long a survey waits for nodes that do not answer.
const SURVEY_DEADLINE: Duration = Duration::from_millis(1_500);

/// The other nodes: which there are, what they are told, and what they are asked.
#[derive(Debug)]
pub(crate) struct Cluster {
    this: Arc<Status>,
    broker: Arc<dyn Broker>,
    members: Mutex<Members>,
    surveys: Mutex<Surveys>,
    flights: Flights<Arc<[Answer]>>,
    reads: Flights<()>,
    entries: Arc<Entries>,
    occupancy: Arc<Occupancy>,
    subscription_counts: Arc<SubscriptionCounts>,
}

impl Cluster {
    pub(super) fn new(
        this: Arc<Status>,
        broker: Arc<dyn Broker>,
        (entries, occupancy): (Arc<Entries>, Arc<Occupancy>),
        subscription_counts: Arc<SubscriptionCounts>,
    ) -> Self {
        Self {
            this,
            broker,
            members: Mutex::default(),
            surveys: Mutex::default(),
            flights: Flights::default(),
            reads: Flights::default(),
            entries,
            occupancy,
            subscription_counts,
        }
    }

    /// Returns the ID of this node.
    pub(super) fn this_id(&self) -> &str {
        self.this.id()
    }

    /// Returns all registered nodes, this one first. Only this one if the broker does not answer.
    pub(crate) async fn nodes(&self) -> Vec<NodeInfo> {
        let others = self.broker.node_details().await.unwrap_or_else(|error| {
            debug!(%error, "cannot read the details of other nodes");
            Vec::new()
        });
        let others = others
            .iter()
            .filter_map(|details| serde_json::from_slice(details).ok());
        let is_other = |node: &NodeInfo| node.id != self.this.id();
        let mut others: Vec<_> = others.filter(is_other).collect();
        others.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        others.insert(0, self.this.info());
        others
    }

    /// Returns the number of known nodes, including this one.
    pub(crate) fn nodes_count(&self) -> usize {
        1 + self.members_now().count()
    }

    /// Returns whether another node is registered. Reads the registry if it is unknown, because a
    /// client of a node that has just started can name it before the node itself is heard.
    pub(super) async fn finds(self: &Arc<Self>, node: &str) -> bool {
        if self.knows(node) {
            return true;
        }
        self.learn_nodes().await;
        self.knows(node)
    }

    fn knows(&self, node: &str) -> bool {
        self.members.lock().knows(node)
    }

    /// Learns which nodes are registered, or joins a read of the registry that is in progress.
    async fn learn_nodes(self: &Arc<Self>) {
        let depart = || {
            let cluster = self.clone();
            let read = async move {
                match tokio::time::timeout(SURVEY_DEADLINE, cluster.broker.nodes()).await {
                    Ok(Ok(nodes)) => {
                        let others = nodes.into_iter().filter(|node| node != cluster.this.id());
                        cluster.members.lock().handle_names(others);
                    }
                    Ok(Err(error)) => debug!(%error, "cannot read which nodes there are"),
                    Err(_) => debug!("the broker does not say in time which nodes there are"),
                }
            };
            read.boxed()
        };
        self.reads.join(String::new(), depart).await;
    }

    /// Asks all other nodes, or joins a request with the same question that is already in progress.
    /// Returns the answers that arrived in time.
    pub(super) async fn ask_others(self: &Arc<Self>, ask: NodeRequest) -> Vec<Answer> {
        let are_listed = self.members_now().are_listed();
        if !are_listed {
            self.learn_nodes().await;
        }
        let nodes = self.members_now().ids();
        if nodes.is_empty() {
            return Vec::new();
        }
        let depart = || {
            let (cluster, nodes, ask) = (self.clone(), nodes.clone(), ask.clone());
            async move { cluster.survey(nodes, ask).await.into() }.boxed()
        };
        match ask.question() {
            Some(question) => self.flights.join(question, depart).await.to_vec(),
            None => self.survey(nodes, ask).await,
        }
    }

    /// Asks a single other node. Returns `None` if it does not answer in time.
    pub(super) async fn ask_one(&self, node: &str, ask: NodeRequest) -> Option<Answer> {
        let patience = (SurveyKind::Question, SURVEY_DEADLINE);
        self.ask_node(node, ask, patience).await.ok().flatten()
    }

    /// Passes a request of a client that polls to the node of its session, which holds it for at
    /// most `hold`. Returns `None` if the node does not answer in time.
    ///
    /// # Errors
    /// Too many such requests are waiting.
    pub(super) async fn poll_one(
        &self,
        node: &str,
        ask: NodeRequest,
        hold: Duration,
    ) -> Result<Option<Answer>, TooMany> {
        let patience = (SurveyKind::Poll, hold + SURVEY_DEADLINE);
        self.ask_node(node, ask, patience).await
    }

    async fn ask_node(
        &self,
        node: &str,
        ask: NodeRequest,
        patience: (SurveyKind, Duration),
    ) -> Result<Option<Answer>, TooMany> {
        let nodes = vec![node.to_owned()];
        let answers = self.ask(nodes, Some(node), ask, patience).await?;
        Ok(answers.into_iter().next())
    }

    /// Asks several other nodes. Returns the answers that arrive in time.
    async fn survey(&self, nodes: Vec<String>, ask: NodeRequest) -> Vec<Answer> {
        let patience = (SurveyKind::Question, SURVEY_DEADLINE);
        self.ask(nodes, None, ask, patience)
            .await
            .unwrap_or_default()
    }

    /// Asks other nodes and collects the answers that arrive in time.
    async fn ask(
        &self,
        nodes: Vec<String>,
        to: Option<&str>,
        ask: NodeRequest,
        (kind, deadline): (SurveyKind, Duration),
    ) -> Result<Vec<Answer>, TooMany> {
        let opened = self.surveys.lock().open(nodes, kind);
        let (request, mut parts) =
            opened.inspect_err(|error| debug!(%error, "cannot ask other nodes"))?;
        let _close = CloseOnDrop(self, request);
        let mut answers = Vec::new();
        let collect = async {
            self.send(to, Body::Request { request, ask }).await;
            while let Some(answer) = parts.recv().await {
                answers.push(answer);
            }
        };
        if tokio::time::timeout(deadline, collect).await.is_err() {
            debug!(request, "a node did not answer in time");
        }
        Ok(answers)
    }

    /// Broadcasts a message to all nodes. Lost if the broker is unavailable.
    pub(super) async fn say(&self, body: Body) {
        self.send(None, body).await;
    }

    /// Sends a message to one node, or to all nodes. Lost if the broker is unavailable.
    pub(super) async fn send(&self, to: Option<&str>, body: Body) {
        let from = self.this.id().to_owned();
        let message = Message { from, body }.encode();
        if let Err(error) = self.broker.send_control(to, message).await {
            debug!(%error, "cannot send a message to other nodes");
        }
    }

    /// Keeps the node registered. Never returns.
    pub(super) async fn run_beats(self: Arc<Self>) {
        let mut is_refused = false;
        loop {
            match self.beat().await {
                Ok(()) => is_refused = false,
                Err(error @ BrokerError::Refused { .. }) if !is_refused => {
                    warn!(%error, "cannot register this node; it does not know other nodes");
                    is_refused = true;
                }
                Err(error) => debug!(%error, "cannot renew the lease of this node"),
            }
            tokio::time::sleep(BEAT_INTERVAL).await;
        }
    }

    /// Tells the other nodes that this one leaves.
    pub(super) async fn leave(&self) {
        if let Err(error) = self.broker.deregister().await {
            debug!(%error, "cannot end the lease of this node");
        }
        let this = self.this.id().to_owned();
        self.say(Body::Goodbye { nodes: vec![this] }).await;
    }

    async fn beat(&self) -> Result<(), BrokerError> {
        // Serializing to memory fails only for maps with keys that are not strings; there are none.
        let details = serde_json::to_vec(&self.this.info()).unwrap_or_default();
        let beat = self.broker.beat(details.into()).await?;
        if beat.has_lost_presence {
            self.entries.restore();
            self.occupancy.restore();
        }
        let must_read = self.record_beat(beat);
        if beat.is_new {
            self.say(Body::Hello).await;
        }
        if !must_read {
            return Ok(());
        }
        let nodes = self.broker.nodes().await?.into_iter();
        let others = nodes.filter(|node| node != self.this.id());
        let gone = self.members.lock().handle_list(others);
        if !gone.is_empty() {
            // The others then need not find out themselves.
            self.handle_goodbye(&gone);
            self.say(Body::Goodbye { nodes: gone }).await;
        }
        Ok(())
    }

    /// Records the answer to a beat. Returns whether the list of nodes must be read.
    fn record_beat(&self, beat: Beat) -> bool {
        let mut members = self.members.lock();
        members.handle_beat(now(), beat.is_new, beat.nodes)
    }

    /// Records that a node has joined.
    pub(super) fn handle_hello(&self, node: &str) {
        self.members.lock().handle_hello(node);
    }

    /// Records that nodes have left.
    pub(super) fn handle_goodbye(&self, nodes: &[String]) {
        for node in nodes {
            self.members.lock().handle_goodbye(node);
            self.surveys.lock().handle_goodbye(node);
        }
        self.subscription_counts.forget_nodes(nodes);
    }

    /// Handles a part of a node's answer to a request.
    pub(super) fn handle_reply(&self, request: u64, from: &str, is_last: bool, answer: Answer) {
        self.surveys
            .lock()
            .handle_reply(request, from, is_last, answer);
    }

    /// Returns the other nodes, without those of a broker that has been silent for too long.
    fn members_now(&self) -> MutexGuard<'_, Members> {
        let mut members = self.members.lock();
        members.handle_timeout(now());
        members
    }
}

/// Closes a survey when its caller no longer waits for it.
struct CloseOnDrop<'a>(&'a Cluster, u64);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.surveys.lock().close(self.1);
    }
}
