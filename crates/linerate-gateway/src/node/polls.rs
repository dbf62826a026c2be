//! Requests of clients that poll at another node than that of their session.

use std::time::Duration;

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;

use super::{
    all_nodes::AllNodes,
    cluster::message::{Answer, NodeRequest},
    polling::HOLD,
};
use crate::{
    clock::now,
    protocol::polling::{PollEnd, Polled, PolledName, PollingRefusal},
};

impl AllNodes {
    /// Fetches the output of a session on any node, and waits until there is some, for at most
    /// `hold` if that is not `None`.
    ///
    /// # Errors
    /// The session refuses, its node does not answer, or too many polls wait for other nodes.
    pub(crate) async fn poll(
        &self,
        name: &PolledName,
        hold: Option<Duration>,
    ) -> Result<Polled, PollingRefusal> {
        let PolledName { node, session } = name;
        if node == self.cluster.this_id() {
            return self.responder.polled.find(session)?.poll(hold).await;
        }
        let until = hold.and_then(|hold| now().checked_add(hold));
        loop {
            let left = until.map_or(HOLD, |until| until.saturating_duration_since(now()));
            let hold = left.min(HOLD);
            let ask = NodeRequest::Fetch {
                session: session.to_string(),
                hold_ms: Some(rounded_up(hold)),
            };
            match self.ask_node_of_session(node, ask, hold).await? {
                Answer::Fetched {
                    end: PollEnd::Idle, ..
                } if until.is_none_or(|until| until > now()) => {}
                Answer::Fetched {
                    frames,
                    end,
                    reason,
                } => {
                    let frames = BASE64_STANDARD.decode(frames).unwrap_or_default();
                    return Ok(Polled {
                        frames: vec![frames.into()],
                        end,
                        reason,
                    });
                }
                _ => return Err(PollingRefusal::UnknownSession),
            }
        }
    }

    /// Delivers the body of a request to a session on any node. Completes when the session has
    /// handled it.
    ///
    /// # Errors
    /// Like [`poll`](Self::poll).
    pub(crate) async fn send(&self, name: &PolledName, body: Bytes) -> Result<(), PollingRefusal> {
        let PolledName { node, session } = name;
        if node == self.cluster.this_id() {
            return self.responder.polled.find(session)?.send(body).await;
        }
        let ask = NodeRequest::Messages {
            session: session.to_string(),
            data: BASE64_STANDARD.encode(body),
        };
        match self.ask_node_of_session(node, ask, HOLD).await? {
            Answer::Count(1) => Ok(()),
            _ => Err(PollingRefusal::UnknownSession),
        }
    }

    /// Asks another node, which is expected to answer soon after `hold`.
    async fn ask_node_of_session(
        &self,
        node: &str,
        ask: NodeRequest,
        hold: Duration,
    ) -> Result<Answer, PollingRefusal> {
        if !self.cluster.finds(node).await {
            return Err(PollingRefusal::UnknownSession);
        }
        match self.cluster.poll_one(node, ask, hold).await {
            Ok(Some(Answer::Refused(refusal))) => Err(refusal),
            Ok(answer) => answer.ok_or(PollingRefusal::UnknownSession),
            Err(_) => Err(PollingRefusal::Unavailable),
        }
    }
}

/// Returns a duration in milliseconds, rounded up: after this time, nothing is left of it.
fn rounded_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
