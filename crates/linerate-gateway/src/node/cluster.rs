//! The nodes of a service as a cluster: membership, presence changes, and surveys of all nodes.
//!
//! There is no shared store. Nodes announce themselves over the broker every few seconds. A survey
//! asks all nodes, and waits for the answers of those that are known, up to a deadline.

mod flights;
pub(crate) mod members;
pub(crate) mod message;
pub(crate) mod surveys;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use tokio::sync::{Notify, Semaphore};
use tracing::debug;

use super::{Control, Node, presence::Moves};
use flights::Flights;
use members::{ANNOUNCE_INTERVAL, Members};
use message::{Answer, Ask, Body, Message, NodeInfo};
use surveys::Surveys;

/// How long a survey waits for nodes that do not answer.
const SURVEY_DEADLINE: Duration = Duration::from_millis(1_500);

/// The maximum number of requests from other nodes that are answered concurrently. Further requests
/// are dropped, and the asking node waits until its deadline.
const ANSWERS_AT_ONCE: usize = 64;

/// What a node knows about the other nodes.
#[derive(Debug)]
pub(crate) struct Cluster {
    members: Mutex<Members>,
    surveys: Mutex<Surveys>,
    flights: Flights,
    pub(super) moves: Moves,
    announce: Notify,
    answers: Arc<Semaphore>,
}

impl Cluster {
    pub(super) fn new() -> Self {
        Self {
            members: Mutex::default(),
            surveys: Mutex::default(),
            flights: Flights::default(),
            moves: Moves::default(),
            announce: Notify::new(),
            answers: Arc::new(Semaphore::new(ANSWERS_AT_ONCE)),
        }
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn surveys(&self) -> MutexGuard<'_, Surveys> {
        self.surveys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Returns all known nodes, this one first.
    pub(crate) fn nodes(&self) -> Vec<NodeInfo> {
        let mut nodes = vec![self.info()];
        let mut members = self.cluster.members();
        members.handle_timeout(Instant::now());
        nodes.extend(members.all());
        nodes
    }

    /// Returns the number of known nodes, including this one.
    pub(crate) fn nodes_count(&self) -> usize {
        1 + self.cluster.members().ids().len()
    }

    /// Returns whether another node is known.
    pub(super) fn knows(&self, node: &str) -> bool {
        self.cluster.members().knows(node)
    }

    /// Asks all nodes, including this one. Returns the answers that arrived in time.
    pub(crate) async fn survey(self: &Arc<Self>, ask: Ask) -> Vec<Answer> {
        let nodes = {
            let mut members = self.cluster.members();
            members.handle_timeout(Instant::now());
            members.ids()
        };
        if nodes.is_empty() {
            return self.answer(ask).await;
        }
        let (mut answers, theirs) =
            tokio::join!(self.answer(ask.clone()), self.ask_others(nodes, ask));
        answers.extend(theirs);
        answers
    }

    /// Asks all other nodes, or joins a request with the same question that is already in progress.
    async fn ask_others(self: &Arc<Self>, nodes: Vec<String>, ask: Ask) -> Vec<Answer> {
        let depart = || {
            let (node, nodes, ask) = (self.clone(), nodes.clone(), ask.clone());
            async move { node.ask(nodes, None, ask).await.into() }.boxed()
        };
        match self.cluster.flights.join(&ask, depart) {
            Some(flight) => flight.await.to_vec(),
            None => self.ask(nodes, None, ask).await,
        }
    }

    /// Asks a single other node. Returns `None` if it does not answer in time.
    pub(crate) async fn ask_one(self: &Arc<Self>, node: &str, ask: Ask) -> Option<Answer> {
        let node = node.to_owned();
        let answers = self.ask(vec![node.clone()], Some(node), ask).await;
        answers.into_iter().next()
    }

    /// Asks other nodes and collects the answers that arrive in time.
    async fn ask(
        self: &Arc<Self>,
        nodes: Vec<String>,
        to: Option<String>,
        ask: Ask,
    ) -> Vec<Answer> {
        let opened = self.cluster.surveys().open(nodes);
        let (request, mut parts) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                debug!(%error, "cannot start a survey of other nodes");
                return Vec::new();
            }
        };
        let _close = CloseOnDrop(&self.cluster, request);
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
        let from = self.id.clone();
        let message = Message { from, body }.encode();
        if let Err(error) = self.broker.send_control(message).await {
            debug!(%error, "cannot send a message to other nodes");
        }
    }

    /// Announces the node every few seconds and whenever another node appears. Never returns.
    pub(super) async fn run_announcements(self: Arc<Self>) {
        loop {
            self.say(Body::Announcement(self.info())).await;
            // An error means that the interval has passed.
            _ = tokio::time::timeout(ANNOUNCE_INTERVAL, self.cluster.announce.notified()).await;
        }
    }

    /// Handles the messages of other nodes until the channel closes. Never waits for the broker,
    /// which may itself wait for this task.
    pub(super) async fn run_control(self: Arc<Self>, mut control: Control) {
        while let Some(bytes) = control.0.recv().await {
            match Message::decode(&bytes) {
                Some(message) if message.from != self.id => self.heed(message),
                Some(_) => {}
                None => debug!(
                    bytes = bytes.len(),
                    "cannot decode a message from another node"
                ),
            }
        }
    }

    fn heed(self: &Arc<Self>, message: Message) {
        let from = message.from;
        match message.body {
            Body::Announcement(mut info) => {
                info.id = from;
                if self
                    .cluster
                    .members()
                    .handle_announcement(Instant::now(), info)
                {
                    self.cluster.announce.notify_one();
                }
            }
            Body::Goodbye => {
                self.cluster.members().handle_goodbye(&from);
                self.cluster.surveys().handle_goodbye(&from);
            }
            Body::Moves(moves) => self.moved_elsewhere(moves),
            Body::Reply {
                request,
                to,
                is_last,
                answer,
            } if to == self.id => {
                let mut surveys = self.cluster.surveys();
                surveys.handle_reply(request, &from, is_last, answer);
            }
            Body::Reply { .. } => {}
            Body::Revoked(revocation) => self.take_revocation(revocation),
            Body::Request { request, to, ask } => {
                if to.is_none_or(|to| to == self.id) {
                    self.reply(from, request, ask);
                }
            }
        }
    }

    /// Answers another node in a separate task.
    fn reply(self: &Arc<Self>, to: String, request: u64, ask: Ask) {
        let Ok(permit) = self.cluster.answers.clone().try_acquire_owned() else {
            debug!(
                request,
                "too many requests from other nodes; request dropped"
            );
            return;
        };
        let node = self.clone();
        self.runtime.spawn(async move {
            let mut answers = node.answer(ask).await;
            let last = answers.pop().unwrap_or(Answer::Count(0));
            let parts = answers.into_iter().map(|answer| (answer, false));
            for (answer, is_last) in parts.chain([(last, true)]) {
                let to = to.clone();
                let body = Body::Reply {
                    request,
                    to,
                    is_last,
                    answer,
                };
                node.say(body).await;
            }
            drop(permit);
        });
    }
}

/// Closes a survey when its caller no longer waits for it.
struct CloseOnDrop<'a>(&'a Cluster, u64);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.surveys().close(self.1);
    }
}
