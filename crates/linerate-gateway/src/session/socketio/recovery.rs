//! Connection state recovery: a client that has lost its connection returns to its session.
//!
//! When a connection is lost, the node stores what it has handed to the client ([`Journal`]) in the
//! broker, under the private ID of the session. The node that the client returns to takes it from
//! there, at most once, and reads from the histories what the client has missed.

use std::{fmt, sync::Arc};

use linerate_hub::{ChannelName, ClientId};
use serde::{Deserialize, Serialize};

use super::{
    super::{
        Context, Gate, Journal, Session,
        journal::{DetachedSession, Joined, StoredJournal},
    },
    journaling::JournalingOutlet,
};
use crate::protocol::{codes::Disconnect, private_id::PrivateId, socketio};

/// The part of a session that lets its client return. When it is dropped, the client is gone.
pub(super) struct Recovery {
    gate: Arc<Gate>,
    outlet: Arc<JournalingOutlet>,
    /// The user and the ID of the client.
    who: (String, String),
    /// The namespaces that the client can return to.
    sessions: Vec<(String, PrivateId)>,
}

/// The state of a client that may return, as another process continues it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PortableRecovery {
    sessions: Vec<(String, String)>,
    /// `None` if the client can no longer return.
    journal: Option<StoredJournal>,
}

impl Recovery {
    /// Begins to note what is handed to a client, if the configuration says so.
    fn begin(context: &mut Context) -> Option<Box<Self>> {
        let recovery = context.gate.shared.settings().config.socketio.recovery;
        if recovery.is_zero() {
            return None;
        }
        let account = &context.gate.worker.accounts().subscriptions;
        Some(Self::with(context, Journal::new(account)))
    }

    fn with(context: &mut Context, journal: Journal) -> Box<Self> {
        let outlet = Arc::new(JournalingOutlet {
            outlet: context.outlet.clone(),
            journal,
        });
        context.outlet = outlet.clone();
        Box::new(Self {
            gate: context.gate.clone(),
            outlet,
            who: Default::default(),
            sessions: Vec::new(),
        })
    }

    /// Continues the state of another process.
    pub(super) fn restored(context: &mut Context, portable: PortableRecovery) -> Box<Self> {
        let account = &context.gate.worker.accounts().subscriptions;
        let (is_exact, stored) = match portable.journal {
            Some(stored) => (true, stored),
            None => (false, StoredJournal::default()),
        };
        let mut recovery = Self::with(context, Journal::restored(stored, account));
        let who = &context.connection.who;
        recovery.who = (who.user.to_string(), who.client.to_string());
        let sessions = portable.sessions.into_iter().filter(|_| is_exact);
        let parsed = sessions.filter_map(|(name, id)| Some((name, PrivateId::parse(&id)?)));
        recovery.sessions = parsed.collect();
        recovery
    }

    /// Notes which client can return to its sessions.
    fn attach(&self, client: ClientId) {
        let worker = &self.gate.worker;
        for (_, id) in &self.sessions {
            worker.node().detached.attach(*id, worker.index, client);
        }
    }

    /// Forgets some sessions, which the client does not return to.
    fn forget(&mut self, is_forgotten: impl Fn(&str) -> bool) {
        let detached = &self.gate.worker.node().detached;
        self.sessions.retain(|(namespace, id)| {
            let is_forgotten = is_forgotten(namespace);
            if is_forgotten {
                detached.detach(id);
            }
            !is_forgotten
        });
    }

    /// Returns what another process needs to continue the state.
    fn export(&self) -> PortableRecovery {
        let sessions = self.sessions.iter();
        PortableRecovery {
            sessions: sessions
                .map(|(name, id)| (name.clone(), id.to_string()))
                .collect(),
            journal: self.outlet.journal.stored(),
        }
    }
}

impl Session {
    /// Begins to note what is handed to the client, if it may return.
    pub(super) fn begin_recovery(&mut self) {
        let state = self.protocol_state.socketio();
        if state.is_some_and(|state| state.recovery.is_some()) {
            return;
        }
        if let Some(recovery) = Recovery::begin(&mut self.context) {
            self.protocol_state.begin_socketio().recovery = Some(recovery);
        }
    }

    /// Returns the private ID with which the client can return to a namespace: the one with which
    /// it has returned, or a new one; `None` if it cannot return.
    pub(super) fn private_id(
        &mut self,
        namespace: &str,
        returned: Option<PrivateId>,
    ) -> Option<PrivateId> {
        let client = self.client()?;
        let who = &self.context.connection.who;
        let recovery = self
            .protocol_state
            .socketio_mut()?
            .recovery
            .as_deref_mut()?;
        if !recovery.outlet.journal.is_exact_in(namespace) {
            return None;
        }
        recovery.who = (who.user.to_string(), who.client.to_string());
        let id = returned.unwrap_or_else(PrivateId::new);
        recovery.sessions.push((namespace.to_owned(), id));
        recovery.attach(client);
        Some(id)
    }

    /// Notes that the client of a session that another process has begun can return to it.
    pub(in crate::session) fn continue_recovery(&mut self) {
        if let (Some(client), Some(recovery)) = (self.client(), self.recovery_mut()) {
            recovery.attach(client);
        }
    }

    /// Returns the private ID that the client was told for a namespace, if any.
    pub(super) fn known_private_id(&self, namespace: &str) -> Option<PrivateId> {
        let recovery = self.protocol_state.socketio()?.recovery.as_deref()?;
        let mut sessions = recovery.sessions.iter();
        Some(sessions.find(|(name, _)| name == namespace)?.1)
    }

    /// Forgets the session in a namespace, which the client leaves on purpose.
    pub(super) fn forget_session(&mut self, namespace: &str) {
        if let Some(recovery) = self.recovery_mut() {
            recovery.forget(|name| name == namespace);
        }
    }

    /// Forgets the session in a namespace, and the rooms that the client has left with it.
    pub(super) fn forget_namespace(&mut self, namespace: &str) {
        self.forget_session(namespace);
        if let Some(recovery) = self.recovery_mut() {
            recovery.outlet.journal.forget_namespace(namespace);
        }
    }

    fn recovery_mut(&mut self) -> Option<&mut Recovery> {
        self.protocol_state.socketio_mut()?.recovery.as_deref_mut()
    }

    /// Forgets the session if it does not end in a way after which the client may return.
    pub(in crate::session) fn forget_unless_lost(&mut self, disconnect: &Disconnect) {
        if !is_loss(disconnect) {
            self.forget_recovery();
        }
    }

    /// Forgets the session, which another process continues.
    pub(crate) fn forget_recovery(&mut self) {
        if let Some(recovery) = self.recovery_mut() {
            recovery.forget(|_| true);
        }
    }

    /// Returns what another process needs so that the client can return; `None` if it cannot.
    pub(in crate::session) fn export_recovery(&self) -> Option<PortableRecovery> {
        let recovery = self.protocol_state.socketio()?.recovery.as_deref();
        recovery.map(Recovery::export)
    }

    /// Notes that the application has made the client join a room.
    pub(in crate::session) fn note_joined(&self, channel: &ChannelName) {
        if let Some(journal) = self.context.outlet.journal() {
            let subscription = self.subscriptions.get(channel);
            let info = subscription.and_then(|subscription| subscription.info());
            let info = info.map(|info| String::from_utf8_lossy(info).into_owned());
            journal.set_joined(channel, Joined { info });
        }
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        let ttl = self.gate.shared.settings().config.socketio.recovery;
        let (user, client) = std::mem::take(&mut self.who);
        let node = self.gate.worker.node();
        for (namespace, id) in self.sessions.drain(..) {
            node.detached.detach(&id);
            if ttl.is_zero() {
                continue;
            }
            let Some(journal) = self.outlet.journal.of_namespace(&namespace) else {
                continue;
            };
            let detached = DetachedSession {
                user: user.clone(),
                client: client.clone(),
                namespace,
                journal,
            };
            let json = serde_json::to_vec(&detached);
            let state = id.seal(json.expect("serializing structs to memory cannot fail"));
            node.detached.store(id.key(), state, ttl);
        }
    }
}

impl fmt::Debug for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recovery")
            .field("who", &self.who)
            .field("sessions", &self.sessions)
            .finish_non_exhaustive()
    }
}

/// Returns whether a connection ends because it is lost, or because the server cannot keep it. The
/// client has closed its connection with the first code, but has not left its namespaces.
fn is_loss(disconnect: &Disconnect) -> bool {
    let losses = [
        socketio::CLOSED,
        Disconnect::SHUTDOWN,
        Disconnect::SLOW,
        Disconnect::WRITE_ERROR,
        Disconnect::OVERLOADED,
        Disconnect::NO_PONG,
    ];
    losses.contains(disconnect)
}
