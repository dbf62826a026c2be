//! The sessions of clients on the reactor.

use std::{collections::BTreeSet, sync::Arc, task::Waker, time::Instant};

use linerate::MessageKind;
use linerate_hub::ClientId;

use super::super::{
    ClientOutlet,
    drive::{EmulatedRuntime, SessionRuntime},
    portable::PortableClient,
    running::{PingedSession, RunningSession},
};
use crate::{
    protocol::codes::Disconnect,
    server::{ConnectionGuard, ConnectionPlace},
};

/// A session that is not run in a task of its own.
pub(in crate::transport) enum Running {
    /// Of a client that sends commands on its WebSocket.
    Commands(Box<SessionRuntime>),
    /// Of a client on a stream that sends commands in separate requests.
    Emulated(Box<EmulatedRuntime>),
    /// Of a client on a WebSocket whose subscriptions are in the URL.
    Fixed(Box<RunningSession>),
    /// Of a client on a stream whose subscriptions are in the URL.
    Pinged(Box<PingedSession>),
}

/// What the sessions on WebSockets and on streams have in common.
enum Shared<'a> {
    Commands(&'a SessionRuntime),
    Fixed(&'a RunningSession),
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
    /// Starts to deliver, unless the client has to send commands first.
    pub(super) fn begin(&self) {
        if let Shared::Fixed(session) = self.shared() {
            session.begin();
        }
    }

    /// Handles what has happened to the outlet and to operations of the session, and commands that
    /// have arrived in separate requests. What `waker` returns is woken when an operation continues
    /// or such commands arrive. Returns the reason to disconnect the client, if it has to be
    /// disconnected.
    pub(super) fn handle_changed(&mut self, waker: impl Fn() -> Waker) -> Option<Disconnect> {
        match self {
            Self::Commands(session) => session.handle_changed(waker),
            Self::Emulated(session) => session.handle_changed(waker),
            Self::Fixed(session) => session.handle_changed(),
            Self::Pinged(session) => session.handle_changed(),
        }
    }

    /// Handles a message of the client.
    pub(super) fn handle_message(&mut self, kind: MessageKind, payload: &[u8]) {
        match self {
            Self::Commands(session) => session.handle_message(kind, payload),
            // Messages on the connections of these clients are discarded.
            Self::Emulated(_) | Self::Fixed(_) | Self::Pinged(_) => {}
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
            Self::Commands(session) => session.handle_timeout(now),
            Self::Emulated(session) => session.runtime.handle_timeout(now),
            Self::Fixed(session) => return session.handle_timeout(now),
            Self::Pinged(session) => return session.handle_timeout(now),
        }
        self.handle_changed(waker)
    }

    /// Ends the session for a reason that only the transport knows. Returns this reason.
    pub(super) fn end(&mut self, disconnect: Disconnect) -> Disconnect {
        if let Self::Commands(session) = self {
            session.end(disconnect.clone());
        }
        disconnect
    }

    /// Returns whether the session accepts another message.
    pub(super) fn wants_input(&self) -> bool {
        match self {
            Self::Commands(session) => session.wants_input(),
            Self::Emulated(_) | Self::Fixed(_) | Self::Pinged(_) => true,
        }
    }

    /// Returns whether another process can continue the session.
    pub(super) const fn is_movable(&self) -> bool {
        matches!(self, Self::Commands(_) | Self::Fixed(_))
    }

    /// Returns whether the session waits for nothing but its client.
    pub(super) fn is_settled(&self) -> bool {
        match self.shared() {
            Shared::Commands(session) => session.is_settled(),
            Shared::Fixed(session) => session.outlet.is_quiet(),
        }
    }

    /// Returns the client's ID at the worker, once the client is connected.
    pub(super) fn client(&self) -> Option<ClientId> {
        match self.shared() {
            Shared::Commands(session) => session.client(),
            Shared::Fixed(session) => Some(session.session.client()),
        }
    }

    /// Returns the output side of the client.
    pub(super) fn outlet(&self) -> &Arc<ClientOutlet> {
        match self.shared() {
            Shared::Commands(session) => session.outlet(),
            Shared::Fixed(session) => &session.outlet,
        }
    }

    /// Returns what another process needs to continue the session.
    pub(super) fn export(&self, now: Instant) -> PortableClient {
        match self.shared() {
            Shared::Commands(session) => session.export(now),
            Shared::Fixed(session) => session.export(now),
        }
    }

    /// Notes that another process continues the session.
    pub(super) fn hand_over(&mut self) {
        if let Self::Commands(session) = self {
            session.hand_over();
        }
    }

    /// Ends the session, and then disconnects the client: it is no longer subscribed when it learns
    /// of this.
    pub(super) fn close(self, disconnect: &Disconnect) {
        let outlet = self.outlet().clone();
        outlet.part(disconnect);
        drop(self);
        outlet.close(disconnect);
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Commands(session) => session.poll_timeout(),
            Self::Emulated(session) => session.runtime.poll_timeout(),
            Self::Fixed(session) => session.poll_timeout(),
            Self::Pinged(session) => session.poll_timeout(),
        }
    }

    fn shared(&self) -> Shared<'_> {
        match self {
            Self::Commands(session) => Shared::Commands(session),
            Self::Emulated(session) => Shared::Commands(&session.runtime),
            Self::Fixed(session) => Shared::Fixed(session),
            Self::Pinged(session) => Shared::Fixed(&session.running),
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
