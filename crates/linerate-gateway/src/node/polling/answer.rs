//! Answers to other nodes, at which requests for a session of this node have arrived.

use std::{sync::Arc, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use uuid::Uuid;

use super::{PolledSession, PolledSessions};
use crate::{node::cluster::message::Answer, protocol::polling::PollingRefusal};

/// How long the node of a session holds a poll that arrived at another node. Then the other node
/// asks again, so that each notices when the other one is gone.
pub(in crate::node) const HOLD: Duration = Duration::from_secs(20);

impl PolledSessions {
    /// Returns the session that a request of another node names.
    pub(in crate::node) fn named(&self, name: &str) -> Result<Arc<PolledSession>, PollingRefusal> {
        let name = Uuid::try_parse(name).map_err(|_| PollingRefusal::UnknownSession)?;
        self.find(&name)
    }

    /// Answers another node that fetches the output of a session, and waits for it for at most
    /// `hold`.
    pub(in crate::node) async fn answer_fetch(&self, name: &str, hold: Option<Duration>) -> Answer {
        let hold = hold.map_or(HOLD, |hold| hold.min(HOLD));
        let fetched = async { self.named(name)?.poll(Some(hold)).await };
        match fetched.await {
            Ok(polled) => Answer::Fetched {
                frames: BASE64_STANDARD.encode(polled.frames.concat()),
                end: polled.end,
                reason: polled.reason,
            },
            Err(refusal) => Answer::Refused(refusal),
        }
    }

    /// Answers another node that delivers messages to a session, in base64.
    pub(in crate::node) async fn answer_messages(&self, name: &str, data: &str) -> Answer {
        let delivered = async {
            let session = self.named(name)?;
            let body = BASE64_STANDARD.decode(data);
            let body = body.map_err(|_| PollingRefusal::BadRequest)?;
            session.send(body.into()).await
        };
        match delivered.await {
            Ok(()) => Answer::Count(1),
            Err(refusal) => Answer::Refused(refusal),
        }
    }
}
