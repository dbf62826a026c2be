//! The nodes of a service as a cluster: membership, and surveys of other nodes.
//!
//! There is no shared store. Nodes announce themselves over the broker every few seconds. A survey
//! asks other nodes, and waits for the answers of those that are known, up to a deadline.

mod flights;
pub(crate) mod members;
pub(crate) mod message;
pub(crate) mod surveys;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use linerate_broker::Broker;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::debug;

use super::status::{NodeInfo, Status};
use flights::Flights;
use members::{ANNOUNCE_INTERVAL, Members};
use message::{Answer, Body, Message, NodeRequest};
use surveys::Surveys;

/// How long a survey waits for nodes that do not answer.
const SURVEY_DEADLINE: Duration = Duration::from_millis(1_500);

/// The other nodes: which there are, what they are told, and what they are asked.
#[derive(Debug)]
pub(crate) struct Cluster {
    this: Arc<Status>,
    broker: Arc<dyn Broker>,
    members: Mutex<Members>,
    surveys: Mutex<Surveys>,
    flights: Flights,
    announce: Notify,
}

impl Cluster {
    pub(super) fn new(this: Arc<Status>, broker: Arc<dyn Broker>) -> Self {
        Self {
            this,
            broker,
            members: Mutex::default(),
            surveys: Mutex::default(),
            flights: Flights::default(),
            announce: Notify::new(),
        }
    }

    /// Returns the ID of this node.
    pub(super) fn this_id(&self) -> &str {
        self.this.id()
    }

    /// Returns all known nodes, this one first.
    pub(crate) fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes = vec![self.this.info()];
        nodes.extend(self.members_now().all());
        nodes
    }

    /// Returns the number of known nodes, including this one.
    pub(crate) fn nodes_count(&self) -> usize {
        1 + self.members.lock().ids().len()
    }

    /// Returns whether another node is known.
    pub(super) fn knows(&self, node: &str) -> bool {
        self.members.lock().knows(node)
    }

    /// Asks all other nodes, or joins a request with the same question that is already in progress.
    /// Returns the answers that arrived in time.
    pub(super) async fn ask_others(self: &Arc<Self>, ask: NodeRequest) -> Vec<Answer> {
        let nodes = self.members_now().ids();
        if nodes.is_empty() {
            return Vec::new();
        }
        let depart = || {
            let (cluster, nodes, ask) = (self.clone(), nodes.clone(), ask.clone());
            async move { cluster.ask(nodes, None, ask).await.into() }.boxed()
        };
        match self.flights.join(&ask, depart) {
            Some(flight) => flight.await.to_vec(),
            None => self.ask(nodes, None, ask).await,
        }
    }

    /// Asks a single other node. Returns `None` if it does not answer in time.
    pub(super) async fn ask_one(&self, node: &str, ask: NodeRequest) -> Option<Answer> {
        let node = node.to_owned();
        let answers = self.ask(vec![node.clone()], Some(node), ask).await;
        answers.into_iter().next()
    }

    /// Asks other nodes and collects the answers that arrive in time.
    async fn ask(&self, nodes: Vec<String>, to: Option<String>, ask: NodeRequest) -> Vec<Answer> {
        let opened = self.surveys.lock().open(nodes);
        let (request, mut parts) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                debug!(%error, "cannot start a survey of other nodes");
                return Vec::new();
            }
        };
        let _close = CloseOnDrop(self, request);
        let mut answers = Vec::new();
        let mut bytes_left = ask.presence_bytes_max();
        let collect = async {
            self.say(Body::Request { request, to, ask }).await;
            while let Some(answer) = parts.recv().await {
                // Each node limits its own answer, but the sum must be limited here.
                let Some(left) = bytes_left.checked_sub(answer.presence_bytes()) else {
                    answers.push(Answer::PresenceTooLarge);
                    return;
                };
                bytes_left = left;
                answers.push(answer);
            }
        };
        if tokio::time::timeout(SURVEY_DEADLINE, collect)
            .await
            .is_err()
        {
            debug!(request, "a node did not answer in time");
        }
        answers
    }

    /// Broadcasts a message to all nodes. Lost if the broker is unavailable.
    pub(super) async fn say(&self, body: Body) {
        let from = self.this.id().to_owned();
        let message = Message { from, body }.encode();
        if let Err(error) = self.broker.send_control(message).await {
            debug!(%error, "cannot send a message to other nodes");
        }
    }

    /// Announces the node every few seconds and whenever another node appears. Never returns.
    pub(super) async fn run_announcements(self: Arc<Self>) {
        loop {
            self.say(Body::Announcement(self.this.info())).await;
            // An error means that the interval has passed.
            _ = tokio::time::timeout(ANNOUNCE_INTERVAL, self.announce.notified()).await;
        }
    }

    /// Records that a node has announced itself.
    pub(super) fn handle_announcement(&self, info: NodeInfo) {
        if self
            .members
            .lock()
            .handle_announcement(Instant::now(), info)
        {
            self.announce.notify_one();
        }
    }

    /// Records that a node leaves.
    pub(super) fn handle_goodbye(&self, node: &str) {
        self.members.lock().handle_goodbye(node);
        self.surveys.lock().handle_goodbye(node);
    }

    /// Handles a part of a node's answer to a request.
    pub(super) fn handle_reply(&self, request: u64, from: &str, is_last: bool, answer: Answer) {
        self.surveys
            .lock()
            .handle_reply(request, from, is_last, answer);
    }

    /// Returns the other nodes, without those that have been silent for too long.
    fn members_now(&self) -> MutexGuard<'_, Members> {
        let mut members = self.members.lock();
        members.handle_timeout(Instant::now());
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
