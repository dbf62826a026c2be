//! Counters of the workers' hubs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_hub::hub::{Deliveries, Totals};

use super::{Node, shard::Shard};

/// The counters of a worker's hub.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// The totals.
    pub totals: Totals,
    /// The deliveries, by namespace and encoding.
    pub deliveries: Vec<Deliveries>,
}

/// The newest tally of each worker. For a worker that is too busy to answer, its last tally is
/// used, because counters must not decrease.
#[derive(Debug)]
pub(super) struct Tallies(Vec<Mutex<Tally>>);

impl Tallies {
    pub(super) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Mutex::default()).collect())
    }

    /// Stores the tally of a worker, on its thread.
    fn store(&self, shard: &Shard) {
        let tally = Tally {
            totals: shard.hub.totals(),
            deliveries: shard.hub.deliveries(),
        };
        *lock(&self.0[usize::from(shard.index)]) = tally;
    }

    fn all(&self) -> Vec<Tally> {
        self.0.iter().map(|tally| lock(tally).clone()).collect()
    }
}

impl Node {
    /// Returns the current counters of each worker's hub, or the last known ones for a worker that
    /// is too busy to answer.
    pub(crate) async fn tallies(&self) -> Vec<Tally> {
        let tallies = self.tallies.clone();
        self.inboxes().run(move |shard| tallies.store(shard)).await;
        self.tallies.all()
    }

    /// Returns the current totals of each worker's hub.
    pub(crate) async fn totals(&self) -> Vec<Totals> {
        let tallies = self.tallies().await.into_iter();
        tallies.map(|tally| tally.totals).collect()
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}
