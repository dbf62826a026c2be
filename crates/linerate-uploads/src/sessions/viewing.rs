//! Connections that view a session of another connection.

use std::sync::{Arc, Weak};

use linerate_logview::session::SessionId;
use tokio::{sync::watch, time::Instant};

use super::{Sessions, registry::Location};
use crate::{hosted::SharedSession, memory::UploadBytes};

/// The reason why a session cannot be viewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ViewRefusal {
    /// The session has as many viewers as it may have.
    Busy,
    /// There is no session with this name.
    Unknown,
}

/// A connection's right to view a session. It does not keep the session from being ended, but from
/// expiring.
pub(crate) struct ViewGuard {
    sessions: Arc<Sessions>,
    id: SessionId,
    pub(crate) shared: Weak<SharedSession>,
    pub(crate) snapshots: watch::Receiver<Arc<str>>,
    /// The counter of the session's bytes, to which those of viewers are added.
    pub(crate) held: UploadBytes,
}

impl Sessions {
    /// Adds a viewer to the session with this name.
    pub(crate) fn view(self: &Arc<Self>, name: SessionId) -> Result<ViewGuard, ViewRefusal> {
        let mut known = self.known();
        let (id, entry) = known.viewed_mut(name).ok_or(ViewRefusal::Unknown)?;
        let shared = entry.shared.upgrade().ok_or(ViewRefusal::Unknown)?;
        if entry.viewers >= self.viewers_max {
            return Err(ViewRefusal::Busy);
        }
        entry.viewers += 1;
        Ok(ViewGuard {
            sessions: self.clone(),
            id,
            shared: entry.shared.clone(),
            snapshots: shared.snapshots(),
            held: entry.held.clone(),
        })
    }

    /// Removes a viewer. If it was the last page of the session, the session's time begins.
    fn leave(self: &Arc<Self>, id: SessionId, shared: &Weak<SharedSession>) {
        let mut known = self.known();
        let Some(entry) = known.get_mut(id).filter(|it| it.shared.ptr_eq(shared)) else {
            return;
        };
        entry.viewers -= 1;
        if let Location::Detached(kept) = &mut entry.location {
            kept.since = Instant::now();
            self.sweep_later(&mut known);
        }
    }
}

impl Drop for ViewGuard {
    fn drop(&mut self) {
        self.sessions.leave(self.id, &self.shared);
    }
}
