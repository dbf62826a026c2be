//! Sessions whose clients poll: the output that waits for their next request, and the input that
//! waits for the session.
//!
//! The session is a task on the thread of its worker; requests arrive at any worker of any node.

mod answer;
mod session;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use uuid::Uuid;

use super::Accounts;
use crate::protocol::polling::PollingRefusal;
pub(super) use answer::HOLD;
pub(crate) use session::{Incoming, PollLimits, PolledSession, Probe};

/// The sessions of this node whose clients poll.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolledSessions(Arc<Mutex<Sessions>>);

type Sessions = HashMap<Uuid, Arc<PolledSession>, RandomState>;

/// A session among those of its node, until it is dropped.
#[derive(Debug)]
pub(crate) struct PolledEntry {
    sessions: PolledSessions,
    name: Uuid,
    session: Arc<PolledSession>,
}

impl PolledSessions {
    /// Adds a session, whose name others must not be able to guess. The memory is charged to
    /// `accounts`.
    pub(crate) fn open(&self, name: Uuid, limits: PollLimits, accounts: &Accounts) -> PolledEntry {
        let session = Arc::new(PolledSession::new(limits, accounts));
        self.0.lock().insert(name, session.clone());
        PolledEntry {
            sessions: self.clone(),
            name,
            session,
        }
    }

    /// Returns a session of this node.
    ///
    /// # Errors
    /// The session does not exist.
    pub(crate) fn find(&self, name: &Uuid) -> Result<Arc<PolledSession>, PollingRefusal> {
        let session = self.0.lock().get(name).cloned();
        session.ok_or(PollingRefusal::UnknownSession)
    }
}

impl PolledEntry {
    pub(crate) const fn session(&self) -> &Arc<PolledSession> {
        &self.session
    }
}

impl Drop for PolledEntry {
    fn drop(&mut self) {
        self.sessions.0.lock().remove(&self.name);
        self.session.lose();
    }
}
