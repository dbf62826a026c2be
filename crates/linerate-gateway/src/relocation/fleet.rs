//! The workers and their clients on the reactor.

use std::{convert::Infallible, fmt, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::sleep,
};

use crate::{node::Worker, server::Frontend, transport::LocalClients};

/// How often is checked whether something is over.
pub(super) const CHECK: Duration = Duration::from_millis(1);

/// The workers of a gateway, each with its clients on the reactor.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    workers: Mutex<Vec<FleetWorker>>,
    added: Notify,
}

/// A worker, from the point of view of another thread.
#[derive(Clone)]
pub(crate) struct FleetWorker {
    pub(crate) index: u16,
    jobs: mpsc::UnboundedSender<Job>,
}

/// What other threads want of a worker.
pub(crate) struct Jobs(mpsc::UnboundedReceiver<Job>);

/// A job for a worker's thread.
type Job = Box<dyn FnOnce(Crew) -> BoxFuture<'static, ()> + Send>;

/// A worker with its clients on the reactor, on its own thread.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) worker: Arc<Worker>,
    pub(crate) clients: Arc<LocalClients>,
    pub(crate) frontend: Arc<Frontend>,
    /// Upgraded for each connection that comes from another process, so that the worker does not
    /// end before it. There is none when the worker is about to end.
    pub(crate) open: mpsc::WeakSender<Infallible>,
}

impl Fleet {
    /// Adds the worker with this index once it runs, and returns what others want of it.
    pub(crate) fn add(&self, index: u16) -> Jobs {
        let (jobs, wanted) = mpsc::unbounded_channel();
        let mut workers = self.workers.lock();
        workers.push(FleetWorker { index, jobs });
        workers.sort_by_key(|worker| worker.index);
        drop(workers);
        self.added.notify_waiters();
        Jobs(wanted)
    }

    /// Waits until `workers` workers run.
    pub(crate) async fn complete(&self, workers: usize) {
        loop {
            // Created before checking, so that no notification is missed.
            let added = self.added.notified();
            if self.workers.lock().len() >= workers {
                return;
            }
            added.await;
        }
    }

    /// Returns the workers, in the order of their indices.
    pub(crate) fn workers(&self) -> Vec<FleetWorker> {
        self.workers.lock().clone()
    }

    /// Runs something on all workers at the same time. Returns the results in the order of the
    /// workers, each of which is `None` if the worker has ended.
    pub(crate) async fn run<T, F>(
        &self,
        task: impl Fn(Crew) -> F + Clone + Send + 'static,
    ) -> Vec<Option<T>>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let workers = self.workers();
        join_all(workers.iter().map(|worker| worker.run(task.clone()))).await
    }

    /// Waits until all workers that still run return true.
    pub(crate) async fn wait_for(&self, is_over: fn(&Crew) -> bool) {
        let task = move |crew: Crew| std::future::ready(is_over(&crew));
        while self.run(task).await.contains(&Some(false)) {
            sleep(CHECK).await;
        }
    }
}

impl FleetWorker {
    /// Runs something on the thread of the worker. Returns `None` if the worker has ended.
    pub(crate) async fn run<T, F>(&self, task: impl FnOnce(Crew) -> F + Send + 'static) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        let job = move |crew: Crew| {
            let done = task(crew).map(|done| {
                // An error means that the caller no longer waits for the answer.
                _ = answer.send(done);
            });
            done.boxed()
        };
        self.jobs.send(Box::new(job)).ok()?;
        answered.await.ok()
    }
}

impl Jobs {
    /// Does the jobs in their order, on the worker's thread.
    pub(crate) async fn run(mut self, crew: Crew) {
        while let Some(job) = self.0.recv().await {
            job(crew.clone()).await;
        }
    }
}

impl fmt::Debug for FleetWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetWorker")
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}
