//! The inboxes of all workers of a node.

use std::{slice, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::{inbox::Inbox, shard::Shard};

/// How long to wait for a worker before leaving it out of an answer.
const WORKER_DEADLINE: Duration = Duration::from_secs(1);

/// The inboxes of the workers, by index. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Inboxes(Arc<[Arc<Inbox>]>);

impl Inboxes {
    /// Creates an inbox for each worker.
    pub(super) fn new(workers: u16) -> Self {
        Self((0..workers).map(|_| Arc::default()).collect())
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the inbox of a worker.
    ///
    /// # Panics
    /// The index is not that of a worker.
    pub(crate) fn of(&self, worker: u16) -> &Arc<Inbox> {
        &self.0[usize::from(worker)]
    }

    /// Returns the inboxes, by index.
    pub(crate) fn iter(&self) -> slice::Iter<'_, Arc<Inbox>> {
        self.0.iter()
    }

    /// Wakes all workers.
    pub(super) fn wake(&self) {
        for inbox in self.iter() {
            inbox.wake();
        }
    }

    /// Runs a job on all workers and returns the results. Workers that are too busy are left out.
    pub(crate) async fn run<T, F>(&self, job: F) -> Vec<T>
    where
        T: Send + 'static,
        F: Fn(&Shard) -> T + Clone + Send + 'static,
    {
        let mut pending = Vec::new();
        for inbox in self.iter() {
            let (done, result) = oneshot::channel();
            let job = job.clone();
            // An error means that the caller no longer waits; a busy worker drops `done`.
            let job = Box::new(move |shard: &Shard| _ = done.send(job(shard)));
            if inbox.submit(job).is_ok() {
                pending.push(result);
            }
        }
        let mut results = Vec::new();
        for result in pending {
            if let Ok(Ok(result)) = timeout(WORKER_DEADLINE, result).await {
                results.push(result);
            }
        }
        results
    }

    /// Runs a job on a worker and waits until it is done. A worker that is too busy does not run
    /// it.
    pub(super) async fn run_on(&self, worker: u16, job: impl FnOnce(&Shard) + Send + 'static) {
        let (done, result) = oneshot::channel();
        let job = Box::new(move |shard: &Shard| {
            job(shard);
            // An error means that the caller no longer waits.
            _ = done.send(());
        });
        if self.of(worker).submit(job).is_ok() {
            _ = timeout(WORKER_DEADLINE, result).await;
        }
    }
}
