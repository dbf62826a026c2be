//! The handle to a budget: what consumers, monitoring and overload protection ask of it.

use std::{fmt, sync::Arc};

use crate::{
    Account, Consumer, Exhausted, Holder, Lease, Registration, State, Watch, counters::Counters,
    holders::Holders, lease::Slabs,
};

/// A number of bytes that the consumers of a process share. Clones refer to the same budget.
///
/// An unbounded budget counts and refuses nothing; it is for libraries whose caller has no budget.
#[derive(Clone, Default)]
pub struct Budget(Option<Arc<Parts>>);

struct Parts {
    counters: Arc<Counters>,
    holders: Arc<Holders>,
}

impl Budget {
    /// Creates a budget of `bytes_max` bytes.
    pub fn new(bytes_max: u64) -> Self {
        Self(Some(Arc::new(Parts {
            counters: Arc::new(Counters::new(bytes_max)),
            holders: Arc::default(),
        })))
    }

    /// Creates a budget without a limit, whose leases cost nothing.
    pub const fn unbounded() -> Self {
        Self(None)
    }

    /// Returns an empty lease.
    pub fn lease(&self, consumer: Consumer) -> Lease {
        Lease::new(self.counters().cloned(), consumer, Slabs::Small)
    }

    /// Returns an account, for buffers that move between threads and each hold a share of it.
    pub fn account(&self, consumer: Consumer) -> Account {
        match &self.0 {
            Some(_) => Account::new(self.worker_lease(consumer)),
            None => Account::default(),
        }
    }

    /// Returns a lease for all buffers of a worker together. It draws whole slabs of up to 256 KiB
    /// and keeps one when it is empty, so that short-lived buffers touch no memory that threads
    /// share.
    pub fn worker_lease(&self, consumer: Consumer) -> Lease {
        Lease::new(self.counters().cloned(), consumer, Slabs::Whole)
    }

    /// Returns a lease of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the budget has fewer bytes left.
    pub fn lease_of(&self, consumer: Consumer, bytes: u64) -> Result<Lease, Exhausted> {
        let mut lease = self.lease(consumer);
        lease.grow(bytes)?;
        Ok(lease)
    }

    /// Counts that something of this consumer was closed to free `bytes` bytes.
    pub fn note_shed(&self, consumer: Consumer, bytes: u64) {
        if let Some(counters) = self.counters() {
            counters.note_shed(consumer, bytes);
        }
    }

    /// Registers something that can be ended to free memory.
    pub fn register(&self, holder: &Arc<impl Holder>) -> Registration {
        let holders = self.0.as_ref().map(|parts| &parts.holders);
        holders.map_or_else(Registration::default, |holders| holders.register(holder))
    }

    /// Returns the registered holders, the oldest first.
    pub fn holders(&self) -> Vec<Arc<dyn Holder>> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |parts| parts.holders.all())
    }

    /// Returns the size of the budget in bytes, or `None` if it is unbounded.
    pub fn bytes_max(&self) -> Option<u64> {
        self.counters().map(|counters| counters.limit())
    }

    /// Returns the state, which is always `Normal` for an unbounded budget.
    pub fn state(&self) -> State {
        self.counters()
            .map_or(State::Normal, |counters| counters.state())
    }

    /// Returns the number of bytes that all consumers have drawn.
    pub fn used_total(&self) -> u64 {
        self.counters().map_or(0, |counters| counters.total())
    }

    /// Returns the number of bytes that a consumer has drawn: those that it holds, and the unused
    /// rest of its slabs.
    pub fn used(&self, consumer: Consumer) -> u64 {
        self.counters()
            .map_or(0, |counters| counters.used(consumer))
    }

    /// Returns how many requests of a consumer for bytes were refused.
    pub fn refusals(&self, consumer: Consumer) -> u64 {
        self.counters()
            .map_or(0, |counters| counters.refusals(consumer))
    }

    /// Returns how many things of a consumer were closed to free memory.
    pub fn sheds(&self, consumer: Consumer) -> u64 {
        self.counters()
            .map_or(0, |counters| counters.sheds(consumer))
    }

    /// Returns the number of bytes that were freed by closing things of a consumer.
    pub fn shed_bytes(&self, consumer: Consumer) -> u64 {
        self.counters()
            .map_or(0, |counters| counters.shed_bytes(consumer))
    }

    /// Returns the number of bytes to free in order to leave the current state: until the budget is
    /// no longer tight if it is critical, and until it is normal if it is tight.
    pub fn excess(&self) -> u64 {
        self.counters().map_or(0, |counters| counters.excess())
    }

    /// Returns a watch that reports changes of the state from now on.
    pub fn watch(&self) -> Watch {
        Watch::new(self.counters().cloned())
    }

    fn counters(&self) -> Option<&Arc<Counters>> {
        self.0.as_ref().map(|parts| &parts.counters)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("bytes_max", &self.bytes_max())
            .field("used", &self.used_total())
            .field("state", &self.state())
            .finish()
    }
}

#[cfg(test)]
mod tests;
