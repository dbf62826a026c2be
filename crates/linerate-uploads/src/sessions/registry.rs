//! The sessions that have a place: where they are, and which of them give way first.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use linerate_logview::session::SessionId;
use tokio::{sync::OwnedSemaphorePermit, time::Instant};

use super::SessionSignals;
use crate::{hosted::SharedSession, memory::UploadBytes};

/// The sessions that have a place, by their identifiers and by the names for viewers.
#[derive(Default)]
pub(super) struct Registry {
    entries: HashMap<SessionId, SessionEntry>,
    views: HashMap<SessionId, SessionId>,
    /// True while a task forgets sessions whose time is over.
    pub(super) is_swept: bool,
}

/// A session that has a place.
pub(super) struct SessionEntry {
    pub(super) address: IpAddr,
    pub(super) held: UploadBytes,
    /// The name by which others view the session.
    pub(super) view: SessionId,
    /// The number of connections that view it.
    pub(super) viewers: usize,
    pub(super) shared: Weak<SharedSession>,
    pub(super) location: Location,
}

/// The current location of a session.
pub(super) enum Location {
    /// The session belongs to a connection, which receives these signals.
    Attached(Arc<SessionSignals>),
    Detached(DetachedSession),
}

/// A session whose connection was lost.
pub(super) struct DetachedSession {
    pub(super) shared: Arc<SharedSession>,
    /// When its last page, which may be a viewer's, was closed.
    pub(super) since: Instant,
    pub(super) place: OwnedSemaphorePermit,
}

impl Registry {
    /// Adds a session, or replaces its entry.
    pub(super) fn insert(&mut self, id: SessionId, entry: SessionEntry) {
        self.views.insert(entry.view, id);
        self.entries.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: SessionId) -> Option<SessionEntry> {
        let entry = self.entries.remove(&id)?;
        self.views.remove(&entry.view);
        Some(entry)
    }

    pub(super) fn get(&self, id: SessionId) -> Option<&SessionEntry> {
        self.entries.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: SessionId) -> Option<&mut SessionEntry> {
        self.entries.get_mut(&id)
    }

    /// Returns the session with this name for viewers.
    pub(super) fn viewed_mut(&mut self, name: SessionId) -> Option<(SessionId, &mut SessionEntry)> {
        let id = *self.views.get(&name)?;
        Some((id, self.entries.get_mut(&id)?))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (SessionId, &SessionEntry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Removes the session that has been without a page for the longest time, of those for which
    /// `may` returns true.
    pub(super) fn forget_oldest(
        &mut self,
        may: impl Fn(&SessionEntry) -> bool,
    ) -> Option<SessionEntry> {
        let kept = self.entries().filter_map(|(id, entry)| {
            let since = entry.kept_since()?;
            may(entry).then_some((since, id))
        });
        let (_, oldest) = kept.min_by_key(|(since, _)| *since)?;
        self.remove(oldest)
    }

    /// Removes the sessions that have been without a page for `keep`.
    pub(super) fn forget_expired(&mut self, keep: Duration, now: Instant) -> Vec<SessionEntry> {
        let is_over = |entry: &SessionEntry| {
            let since = entry.kept_since();
            since.is_some_and(|since| now.duration_since(since) >= keep)
        };
        let over = self.entries().filter(|(_, entry)| is_over(entry));
        let over: Vec<SessionId> = over.map(|(id, _)| id).collect();
        over.into_iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Returns the time since which the oldest session is without a page, or `None` if all have
    /// one.
    pub(super) fn oldest_kept(&self) -> Option<Instant> {
        self.entries
            .values()
            .filter_map(SessionEntry::kept_since)
            .min()
    }
}

impl SessionEntry {
    /// Returns the signals to the session's connection, if it has one.
    pub(super) fn signals(&self) -> Option<&Arc<SessionSignals>> {
        match &self.location {
            Location::Attached(signals) => Some(signals),
            Location::Detached(_) => None,
        }
    }

    /// Returns the time at which the last page of the session was closed, or `None` if it has one.
    pub(super) fn kept_since(&self) -> Option<Instant> {
        match &self.location {
            Location::Detached(kept) if self.viewers == 0 => Some(kept.since),
            _ => None,
        }
    }
}
