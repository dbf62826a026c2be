//! Clients whose worker does not know them yet, because they have not sent their connect command.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use super::outlet::Outlet;

/// The clients of a worker that have not sent their connect command, in the order in which they
/// came.
#[derive(Debug, Default)]
pub(crate) struct WaitingClients {
    count: u64,
    outlets: BTreeMap<u64, Weak<dyn Outlet>>,
}

impl WaitingClients {
    /// Adds a client. Returns its number.
    pub(super) fn add(&mut self, outlet: Weak<dyn Outlet>) -> u64 {
        self.count += 1;
        self.outlets.insert(self.count, outlet);
        self.count
    }

    /// Removes the client with this number.
    pub(super) fn remove(&mut self, number: u64) {
        self.outlets.remove(&number);
    }

    /// Returns the clients with their numbers, newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (u64, Arc<dyn Outlet>)> {
        let outlets = self.outlets.iter().rev();
        outlets.filter_map(|(number, outlet)| Some((*number, outlet.upgrade()?)))
    }

    /// Returns the client with this number, if it is still waiting.
    pub(super) fn get(&self, number: u64) -> Option<Arc<dyn Outlet>> {
        self.outlets.get(&number)?.upgrade()
    }
}
