//! Numbers of clients, users and subscriptions of a node.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use foldhash::fast::RandomState;
use hashbrown::{HashMap, hash_map::EntryRef};

use parking_lot::Mutex;

use crate::protocol::dialect::DialectName;

/// The numbers of clients, users and subscriptions of a node, over all workers.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    clients: AtomicU64,
    subscriptions: AtomicU64,
    users: Mutex<HashMap<String, u64, RandomState>>,
    dialects: Mutex<BTreeMap<DialectName, u64>>,
}

impl Counts {
    /// Returns the number of connected clients.
    pub(crate) fn clients(&self) -> u64 {
        self.clients.load(Ordering::Relaxed)
    }

    /// Returns the number of clients per protocol and transport, for those used since the start.
    pub(crate) fn dialects(&self) -> BTreeMap<DialectName, u64> {
        self.dialects.lock().clone()
    }

    /// Returns the number of clients that use a protocol and transport.
    pub(crate) fn clients_of(&self, dialect: DialectName) -> u64 {
        self.dialects.lock().get(&dialect).copied().unwrap_or(0)
    }

    /// Returns the number of subscriptions.
    pub(crate) fn subscriptions(&self) -> u64 {
        self.subscriptions.load(Ordering::Relaxed)
    }

    /// Returns the number of distinct users; all anonymous clients count as one user.
    pub(crate) fn users(&self) -> u64 {
        self.users.lock().len() as u64
    }

    /// Returns the number of connections of a user.
    pub(crate) fn connections_of(&self, user: &str) -> u64 {
        self.users.lock().get(user).copied().unwrap_or(0)
    }

    pub(super) fn client_came(&self, user: &str, dialect: DialectName) {
        self.clients.fetch_add(1, Ordering::Relaxed);
        *self.dialects.lock().entry(dialect).or_insert(0) += 1;
        *self.users.lock().entry_ref(user).or_insert(0) += 1;
    }

    pub(super) fn client_left(&self, user: &str, dialect: DialectName) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = self.dialects.lock().get_mut(&dialect) {
            *count -= 1;
        }
        if let EntryRef::Occupied(mut entry) = self.users.lock().entry_ref(user) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    pub(super) fn subscribed(&self) {
        self.subscriptions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unsubscribed(&self, count: usize) {
        self.subscriptions
            .fetch_sub(count as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, DialectName};

    const LINES: DialectName = ("lines", "memory");

    #[test]
    fn users_are_counted_once() {
        let counts = Counts::default();
        for user in ["a", "b", "a"] {
            counts.client_came(user, LINES);
        }
        assert_eq!((counts.clients(), counts.users()), (3, 2));
        assert_eq!(counts.connections_of("a"), 2);
        counts.client_left("a", LINES);
        counts.client_left("a", LINES);
        assert_eq!((counts.clients(), counts.users()), (1, 1));
    }

    #[test]
    fn clients_are_counted_by_what_they_speak() {
        let counts = Counts::default();
        counts.client_came("a", LINES);
        counts.client_came("b", LINES);
        counts.client_came("b", ("raw", "websocket"));
        counts.client_left("b", ("raw", "websocket"));
        let dialects: Vec<_> = counts.dialects().into_iter().collect();
        assert_eq!(dialects, [(LINES, 2), (("raw", "websocket"), 0)]);
    }
}
