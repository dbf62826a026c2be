//! What the hubs of the workers have counted.

use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_hub::hub::{Deliveries, Totals};

use super::{Node, Worker};

/// What the hub of a worker has counted.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// What it has done in all.
    pub totals: Totals,
    /// What it has given out, by namespace and encoding.
    pub deliveries: Vec<Deliveries>,
}

/// The newest tally of each worker: one that is too busy to answer is taken to stand where it stood, because counters
/// must not go back.
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
    /// Returns what the hub of each worker has counted so far; of one that is too busy to say, what it said last.
    pub async fn tallies(&self) -> Vec<Tally> {
        self.on_workers(Worker::store_tally).await;
        let workers = 0..self.tallies.0.len();
        workers
            .map(|worker| self.tallies.of(worker).clone())
            .collect()
    }

    /// Returns what the hub of each worker has done so far.
    pub async fn totals(&self) -> Vec<Totals> {
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
