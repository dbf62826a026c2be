//! Hands clients to another process, which continues their connections and sessions.

use std::{cell::RefCell, sync::Arc};

use bytes::Bytes;
use linerate_hub::ClientId;
use linerate_proto::portable::Version;

use super::{
    super::portable::PortableClient, LocalClients, moved::MovedConnection, session::Running,
    table::ConnectionOptions,
};
use crate::clock::now;

/// A client is handed no more after this many bytes, and is then not handed over, because that
/// would take long. A single publication may be larger.
const UNSENT_BYTES_MAX: usize = 1 << 20;

/// The maximum size of the description of a client and its session, in bytes.
pub(crate) const SESSION_BYTES_MAX: usize = 4 << 20;

/// What happens to the clients of a worker.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Pace {
    #[default]
    Serving,
    /// Nothing is read from clients, so that their sessions come to rest.
    Settling,
    /// Clients are on the way between processes, and nothing happens here.
    Suspended,
}

/// A client that is on the way to another process.
#[derive(Debug)]
pub(super) struct Suspended {
    key: usize,
    client: Option<ClientId>,
    connection: MovedConnection,
}

/// A client that came from another process.
#[derive(Debug)]
pub(crate) struct MovedClient {
    pub(crate) client: PortableClient,
    pub(crate) connection: MovedConnection,
}

impl LocalClients {
    /// Returns the number of clients that another process can continue: those on WebSockets.
    pub(crate) fn count(&self) -> usize {
        self.movable().len()
    }

    /// Stops reading from the clients, so that their sessions come to rest.
    pub(crate) fn settle(&self) {
        self.pace.set(Pace::Settling);
    }

    /// Returns whether the sessions of all clients on WebSockets are at rest. Their replies that
    /// wait for room no longer do.
    pub(crate) fn are_settled(&self) -> bool {
        let keys = self.movable();
        let sessions = self.sessions.borrow();
        let mut are_settled = true;
        for running in keys.into_iter().filter_map(|key| sessions.get(key)) {
            running.outlet().send_all_waiting();
            are_settled &= running.is_settled();
        }
        are_settled
    }

    /// Takes the WebSockets of all clients that are at rest out of the reactor, with everything
    /// that the worker has for them, and passes each to `pack`, with its [`PortableClient`] as
    /// JSON. Before this, the worker must have absorbed what has arrived from the broker, and
    /// nothing may arrive until [`take_back`](Self::take_back) or
    /// [`forget_moved`](Self::forget_moved) is called.
    ///
    /// [`PortableClient`]: super::super::portable::PortableClient
    pub(crate) fn suspend(&self, version: Version, mut pack: impl FnMut(&[u8], &MovedConnection)) {
        self.worker.release_all();
        let keys = self.movable();
        let mut session = Vec::new();
        for key in keys {
            session.clear();
            if let Some(suspended) = self.suspend_one(key, version, &mut session) {
                pack(&session, &suspended.connection);
                self.suspended.borrow_mut().push(suspended);
            }
        }
        self.pause();
    }

    /// Returns the keys of the clients that another process can continue.
    fn movable(&self) -> Vec<usize> {
        let sessions = self.sessions.borrow();
        let mut keys = sessions.keys();
        keys.retain(|key| sessions.get(*key).is_some_and(Running::is_movable));
        keys
    }

    /// Takes a connection out, and appends its session to `session`.
    fn suspend_one(
        &self,
        key: usize,
        version: Version,
        session: &mut Vec<u8>,
    ) -> Option<Suspended> {
        let client = self.sessions.borrow().get(key)?.client();
        if !self.table.borrow().is_movable(key) {
            return None;
        }
        if let Some(client) = client
            && !self.worker.hand_all(client, UNSENT_BYTES_MAX)
        {
            return None;
        }
        // Tells the session of gaps, which may end subscriptions.
        self.handle_changed(key);
        {
            let sessions = self.sessions.borrow();
            let running = sessions.get(key)?;
            running.outlet().send_all_waiting();
            if !running.is_settled() {
                return None;
            }
            // Serializing to memory fails only for maps with keys that are not strings; there are
            // none.
            serde_json::to_writer(&mut *session, &running.export(now())).ok()?;
        }
        let unsent_bytes = self.table.borrow().status(key)?.backlog_bytes;
        if session.len() > SESSION_BYTES_MAX || unsent_bytes > 4 * UNSENT_BYTES_MAX {
            return None;
        }
        let exported = self.table.borrow_mut().export(key, version)?;
        Some(Suspended {
            key,
            client,
            connection: MovedConnection {
                socket: Arc::new(exported.socket),
                state: Bytes::copy_from_slice(&exported.state),
            },
        })
    }

    /// Continues all clients here, because no other process has taken them over.
    pub(crate) fn take_back(&self) {
        let settings = self.environment.settings_full();
        let [with_commands, without] = [true, false].map(|has_commands| {
            ConnectionOptions::new(&settings, self.worker.accounts(), has_commands)
        });
        for suspended in RefCell::take(&self.suspended) {
            let Suspended {
                key, connection, ..
            } = suspended;
            let options = match self.sessions.borrow().get(key) {
                Some(Running::Fixed(_)) => &without,
                _ => &with_commands,
            };
            let taken = self.table.borrow_mut().import(key, connection, options);
            if let Err(error) = taken {
                tracing::warn!(%error, "connection lost after a failed takeover");
                self.counters.remove_connection();
                // Dropped while nothing is borrowed.
                let ended = self.sessions.borrow_mut().remove(key);
                drop(ended);
            }
        }
        self.serve_again();
    }

    /// Forgets the clients that the other process has taken over.
    pub(crate) fn forget_moved(&self) {
        for Suspended { key, client, .. } in RefCell::take(&self.suspended) {
            if let Some(client) = client {
                self.worker.hand_over(client);
            }
            self.counters.remove_connection();
            // Dropped while nothing is borrowed.
            let ended = self.sessions.borrow_mut().remove(key);
            if let Some(mut ended) = ended {
                ended.running.hand_over();
            }
        }
        self.serve_again();
    }

    /// Serves no client until [`serve_again`](Self::serve_again) is called.
    pub(crate) fn pause(&self) {
        self.pace.set(Pace::Suspended);
    }

    /// Serves all clients.
    pub(crate) fn serve_again(&self) {
        self.pace.set(Pace::Serving);
        let keys = self.sessions.borrow().keys();
        for key in keys {
            self.wake(key);
        }
        self.alarm.ring();
    }
}
