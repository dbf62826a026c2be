//! Counters of the workers' hubs.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_hub::hub::{Deliveries, Totals};

use super::{Node, Worker};

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

    fn of(&self, worker: usize) -> MutexGuard<'_, Tally> {
        self.0[worker]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Node {
    /// Returns the current counters of each worker's hub, or the last known ones for a worker that
    /// is too busy to answer.
    pub(crate) async fn tallies(&self) -> Vec<Tally> {
        self.on_workers(Worker::store_tally).await;
        let workers = 0..self.tallies.0.len();
        workers
            .map(|worker| self.tallies.of(worker).clone())
            .collect()
    }

    /// Returns the current totals of each worker's hub.
    pub(crate) async fn totals(&self) -> Vec<Totals> {
        let tallies = self.tallies().await.into_iter();
        tallies.map(|tally| tally.totals).collect()
    }
}

impl Worker {
    fn store_tally(&self) {
        let state = self.state();
        let tally = Tally {
            totals: state.hub.totals(),
            deliveries: state.hub.deliveries(),
        };
        drop(state);
        *self.node.tallies.of(usize::from(self.index)) = tally;
    }
}
