//! Counters of the workers' hubs.

use std::sync::Arc;

use linerate_hub::hub::{Deliveries, Totals};

use parking_lot::{Mutex, MutexGuard};

use super::{inboxes::Inboxes, shard::Shard};

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
pub(crate) struct Tallies {
    inboxes: Inboxes,
    /// By the index of the worker.
    newest: Arc<[Mutex<Tally>]>,
}

impl Tallies {
    pub(super) fn new(inboxes: Inboxes) -> Self {
        let newest = inboxes.iter().map(|_| Mutex::default()).collect();
        Self { inboxes, newest }
    }

    /// Returns the current counters of each worker's hub, or the last known ones for a worker that
    /// is too busy to answer.
    pub(crate) async fn all(&self) -> Vec<Tally> {
        let newest = self.newest.clone();
        let store = move |shard: &Shard| {
            let tally = Tally {
                totals: shard.hub.totals(),
                deliveries: shard.hub.deliveries(),
            };
            *lock(&newest[usize::from(shard.index)]) = tally;
        };
        self.inboxes.run(store).await;
        self.newest
            .iter()
            .map(|tally| lock(tally).clone())
            .collect()
    }

    /// Returns the current totals of each worker's hub.
    pub(crate) async fn totals(&self) -> Vec<Totals> {
        let tallies = self.all().await.into_iter();
        tallies.map(|tally| tally.totals).collect()
    }
}

fn lock(tally: &Mutex<Tally>) -> MutexGuard<'_, Tally> {
    tally.lock()
}
