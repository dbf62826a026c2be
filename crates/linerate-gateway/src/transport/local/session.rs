//! The sessions of clients on the reactor.

use std::{collections::BTreeSet, task::Waker, time::Instant};

use linerate_hub::ClientId;

use super::super::{
    ClientOutlet, drive::SessionRuntime, portable::PortableClient, running::RunningSession,
};
use crate::{
    protocol::codes::Disconnect,
    server::{ConnectionGuard, ConnectionPlace},
};

/// A session that is not run in a task of its own.
pub(in crate::transport) enum Running {
    /// Of a client that sends commands.
    Commands(Box<SessionRuntime>),
    /// Of a client whose subscriptions are in the URL.
    Fixed(Box<RunningSession>),
}

/// The session of a client, with its place in the order of deadlines.
pub(super) struct LocalSession {
    pub(super) running: Running,
    /// The deadline of the session.
    due: Option<Instant>,
    _place: Option<ConnectionPlace>,
}

/// The sessions of the clients, by their keys.
#[derive(Default)]
pub(super) struct Sessions {
    sessions: Vec<Option<LocalSession>>,
    /// When sessions have to be handled, even if nothing happens before.
    deadlines: BTreeSet<(Instant, usize)>,
}

impl Running {
    /// Handles what has happened to the outlet and to operations of the session. What `waker`
    /// returns is woken when an operation continues. Returns the reason to disconnect the client,
    /// if it has to be disconnected.
    pub(super) fn handle_changed(&mut self, waker: impl Fn() -> Waker) -> Option<Disconnect> {
        match self {
            Self::Commands(session) => session.handle_changed(waker),
            Self::Fixed(session) => session.handle_changed(),
        }
    }

    /// Handles a message of the client.
    pub(super) fn handle_message(&mut self, payload: &[u8]) {
        match self {
            Self::Commands(session) => session.handle_frame(payload),
            // The messages of these clients are discarded.
            Self::Fixed(_) => {}
        }
    }

    /// Handles deadlines that have passed. Returns the reason to disconnect the client, if it has
    /// to be disconnected.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        waker: impl Fn() -> Waker,
    ) -> Option<Disconnect> {
        match self {
            Self::Commands(session) => {
                session.handle_timeout(now);
                session.handle_changed(waker)
            }
            Self::Fixed(session) => session.handle_timeout(now),
        }
    }

    /// Ends the session for a reason that only the transport knows. Returns this reason.
    pub(super) fn end(&mut self, disconnect: Disconnect) -> Disconnect {
        if let Self::Commands(session) = self {
            session.end(disconnect.clone());
        }
        disconnect
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Commands(session) => session.poll_timeout(),
            Self::Fixed(session) => session.poll_timeout(),
        }
    }

    /// Returns whether the session accepts another message.
    pub(super) fn wants_input(&self) -> bool {
        match self {
            Self::Commands(session) => session.wants_input(),
            Self::Fixed(_) => true,
        }
    }

    /// Returns whether the session waits for nothing but its client.
    pub(super) fn is_settled(&self) -> bool {
        match self {
            Self::Commands(session) => session.is_settled(),
            Self::Fixed(session) => session.outlet.is_quiet(),
        }
    }

    /// Returns the client's ID at the worker, once the client is connected.
    pub(super) fn client(&self) -> Option<ClientId> {
        match self {
            Self::Commands(session) => session.client(),
            Self::Fixed(session) => Some(session.session.client()),
        }
    }

    /// Returns the output side of the client.
    pub(super) fn outlet(&self) -> &ClientOutlet {
        match self {
            Self::Commands(session) => session.outlet(),
            Self::Fixed(session) => &session.outlet,
        }
    }

    /// Returns what another process needs to continue the session.
    pub(super) fn export(&self, now: Instant) -> PortableClient {
        match self {
            Self::Commands(session) => session.export(now),
            Self::Fixed(session) => session.export(now),
        }
    }

    /// Disconnects the client.
    pub(super) fn close(&self, disconnect: &Disconnect) {
        match self {
            Self::Commands(session) => session.close(disconnect),
            Self::Fixed(session) => session.close(disconnect),
        }
    }
}

impl Sessions {
    pub(super) fn insert(&mut self, key: usize, running: Running, guard: Option<ConnectionGuard>) {
        if self.sessions.len() <= key {
            self.sessions.resize_with(key + 1, || None);
        }
        let session = LocalSession {
            running,
            due: None,
            _place: guard.map(ConnectionGuard::into_place),
        };
        self.put_back(key, session);
    }

    pub(super) fn get(&self, key: usize) -> Option<&Running> {
        let session = self.sessions.get(key)?.as_ref()?;
        Some(&session.running)
    }

    /// Returns the keys of all sessions.
    pub(super) fn keys(&self) -> Vec<usize> {
        let all = self.sessions.iter().enumerate();
        all.filter_map(|(key, session)| session.as_ref().map(|_| key))
            .collect()
    }

    /// Takes a session out to handle it.
    pub(super) fn take(&mut self, key: usize) -> Option<LocalSession> {
        self.sessions.get_mut(key)?.take()
    }

    /// Puts a session back that was taken out, and updates its deadline.
    pub(super) fn put_back(&mut self, key: usize, mut session: LocalSession) {
        let due = session.running.poll_timeout();
        if due != session.due {
            self.forget(key, &session);
            self.deadlines.extend(due.map(|due| (due, key)));
            session.due = due;
        }
        self.sessions[key] = Some(session);
    }

    /// Removes the deadline of a session.
    pub(super) fn forget(&mut self, key: usize, session: &LocalSession) {
        if let Some(due) = session.due {
            self.deadlines.remove(&(due, key));
        }
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<LocalSession> {
        let session = self.take(key)?;
        self.forget(key, &session);
        Some(session)
    }

    /// Returns the next deadline.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(due, _)| *due)
    }

    /// Returns a session whose deadline has passed.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<usize> {
        let (due, key) = *self.deadlines.first()?;
        if due > now {
            return None;
        }
        self.deadlines.pop_first();
        if let Some(Some(session)) = self.sessions.get_mut(key) {
            session.due = None;
        }
        Some(key)
    }
}
