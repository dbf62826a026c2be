//! Handles the messages of other nodes, and other events that concern the node as a whole.

use std::sync::Arc;

use tokio::{runtime::Handle, sync::Semaphore};
use tracing::debug;

use super::{
    cluster::{
        Cluster,
        message::{Answer, Body, Message, NodeRequest},
    },
    dispatch::{Control, ControlEvent},
    occupancy::Occupancy,
    presence::Presence,
    responder::Responder,
    revocations::ClusterRevocations,
    subscription_counts::SubscriptionCounts,
};

/// The maximum number of requests from other nodes that are answered concurrently, except for those
/// that wait for a session whose client polls. Further requests are dropped, and the asking node
/// waits until its deadline.
const ANSWERS_AT_ONCE: usize = 64;

/// Passes the messages of other nodes to the parts of this one that they concern.
#[derive(Debug)]
pub(super) struct ControlHandler {
    pub(super) cluster: Arc<Cluster>,
    pub(super) occupancy: Arc<Occupancy>,
    pub(super) presence: Arc<Presence>,
    pub(super) responder: Arc<Responder>,
    pub(super) revocations: Arc<ClusterRevocations>,
    pub(super) runtime: Handle,
    pub(super) subscription_counts: Arc<SubscriptionCounts>,
}

impl ControlHandler {
    /// Handles messages until the channel closes. Never waits for the broker, which may itself wait
    /// for this task.
    pub(super) async fn run(self, mut control: Control) {
        let answers = Arc::new(Semaphore::new(ANSWERS_AT_ONCE));
        while let Some(event) = control.next().await {
            let bytes = match event {
                ControlEvent::Message(bytes) => bytes,
                ControlEvent::Vacated(names) => {
                    self.occupancy.vacated(&names);
                    continue;
                }
            };
            match Message::decode(&bytes) {
                Some(message) if message.from != self.cluster.this_id() => {
                    self.handle(message, &answers);
                }
                Some(_) => {}
                None => debug!(
                    bytes = bytes.len(),
                    "cannot decode a message from another node"
                ),
            }
        }
    }

    fn handle(&self, message: Message, answers: &Arc<Semaphore>) {
        let from = message.from;
        match message.body {
            Body::Goodbye { nodes } => self.cluster.handle_goodbye(&nodes),
            Body::Hello => self.cluster.handle_hello(&from),
            Body::Moves(moves) => self.presence.moved_elsewhere(moves),
            Body::Reply {
                request,
                is_last,
                answer,
            } => self.cluster.handle_reply(request, &from, is_last, answer),
            Body::Revoked(revocation) => self.revocations.take(revocation),
            Body::Request { request, ask } => self.reply(from, request, ask, answers),
            Body::SubscriptionCounts(counts) => self.subscription_counts.hear(&from, counts),
        }
    }

    /// Answers another node in a separate task.
    fn reply(&self, to: String, request: u64, ask: NodeRequest, answers: &Arc<Semaphore>) {
        let permit = match self.responder.waits_for_session(&ask) {
            true => None,
            false => match answers.clone().try_acquire_owned() {
                Ok(permit) => Some(permit),
                Err(_) => {
                    debug!(
                        request,
                        "too many requests from other nodes; request dropped"
                    );
                    return;
                }
            },
        };
        let (cluster, responder) = (self.cluster.clone(), self.responder.clone());
        self.runtime.spawn(async move {
            let mut answers = responder.answer(ask).await;
            let last = answers.pop().unwrap_or(Answer::Count(0));
            let parts = answers.into_iter().map(|answer| (answer, false));
            for (answer, is_last) in parts.chain([(last, true)]) {
                let body = Body::Reply {
                    request,
                    is_last,
                    answer,
                };
                cluster.send(Some(&to), body).await;
            }
            drop(permit);
        });
    }
}
