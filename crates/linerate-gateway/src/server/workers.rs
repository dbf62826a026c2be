//! Worker threads with one tokio runtime and their own listeners each, so that a connection stays
//! on its worker.

use std::{
    future::Future,
    io,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    net::TcpListener,
    runtime::{Builder, Handle, Runtime},
    sync::watch,
};

/// Idle time after which a thread for blocking work ends. With mimalloc, memory that it allocated
/// and another thread freed returns to the system only then.
const BLOCKING_IDLE: Duration = Duration::from_secs(1);

/// Maximum number of workers.
const WORKERS_MAX: usize = 1_024;

/// The runtimes of workers that are not started yet.
#[derive(Debug)]
pub(crate) struct Workers(Vec<IdleRuntime>);

/// The runtime of a worker that is not started yet. Dropping it waits for nothing, because that may
/// happen in a task of another runtime, which must not block.
#[derive(Debug)]
struct IdleRuntime(Option<Runtime>);

/// Running worker threads.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<io::Result<()>>>,
    /// The number of threads that have ended.
    ended: watch::Receiver<usize>,
}

impl Workers {
    /// Creates the runtimes of `workers` workers; 0 for one per core.
    ///
    /// # Errors
    /// Fails if a runtime cannot be created.
    pub(crate) fn new(workers: usize) -> io::Result<Self> {
        let workers = match workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let runtimes = (0..workers.min(WORKERS_MAX)).map(|_| IdleRuntime::new());
        runtimes.collect::<io::Result<_>>().map(Self)
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.0.len()).unwrap_or(u16::MAX)
    }

    /// Returns the runtime of the worker if there is only one.
    pub(crate) fn only_runtime(&self) -> Option<&Handle> {
        match &*self.0 {
            [runtime] => runtime.0.as_ref().map(Runtime::handle),
            _ => None,
        }
    }

    /// Runs `serve` on a separate thread for each worker, with the index of the worker, from 0, and
    /// its share of the listeners.
    ///
    /// # Errors
    /// Fails if a thread cannot be started, or descriptors run out.
    pub(crate) fn start<S, F>(
        self,
        listeners: Vec<std::net::TcpListener>,
        serve: S,
    ) -> io::Result<Threads>
    where
        S: Fn(u16, Vec<TcpListener>) -> F + Clone + Send + 'static,
        F: Future<Output = io::Result<()>>,
    {
        let (count, ended) = watch::channel(0);
        let count = Arc::new(count);
        let mut handles = Vec::new();
        let shares = shares(listeners, self.0.len())?;
        for (index, (runtime, listeners)) in (0..).zip(self.0.into_iter().zip(shares)) {
            let (serve, count) = (serve.clone(), count.clone());
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            handles.push(thread.spawn(move || {
                // This also runs on a panic, because the others must not wait for a worker that has
                // ended.
                let _ended = ThreadGuard(count);
                let Some(runtime) = runtime.take() else {
                    return Ok(());
                };
                runtime.block_on(async {
                    let listeners = listeners.into_iter().map(TcpListener::from_std);
                    serve(index, listeners.collect::<io::Result<_>>()?).await
                })
            })?);
        }
        Ok(Threads { handles, ended })
    }
}

/// Distributes listeners over workers. Each listener has a worker that accepts from it, because the
/// kernel assigns connections to all of them; each worker has a listener, if need be one that
/// others have as well. The numbers differ if the listeners come from a process with more or fewer
/// workers.
fn shares(
    listeners: Vec<std::net::TcpListener>,
    workers: usize,
) -> io::Result<Vec<Vec<std::net::TcpListener>>> {
    let mut shares: Vec<Vec<_>> = (0..workers).map(|_| Vec::new()).collect();
    let count = listeners.len();
    for (worker, share) in shares.iter_mut().enumerate().skip(count) {
        if let Some(index) = worker.checked_rem(count) {
            share.push(listeners[index].try_clone()?);
        }
    }
    for (index, listener) in listeners.into_iter().enumerate() {
        shares[index % workers].push(listener);
    }
    Ok(shares)
}

impl IdleRuntime {
    fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .thread_keep_alive(BLOCKING_IDLE)
            .build()?;
        Ok(Self(Some(runtime)))
    }

    /// Takes the runtime. Call this once.
    fn take(mut self) -> Option<Runtime> {
        self.0.take()
    }
}

impl Drop for IdleRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Threads {
    /// Waits until one of the workers has ended, for any reason.
    pub(crate) async fn one_ended(&self) {
        self.wait_for_ended(1).await;
    }

    /// Waits until all workers have ended.
    pub(crate) async fn all_ended(&self) {
        self.wait_for_ended(self.handles.len()).await;
    }

    async fn wait_for_ended(&self, count: usize) {
        let mut ended = self.ended.clone();
        // An error means that every thread has dropped its sender, which it does when it ends.
        _ = ended.wait_for(|ended| *ended >= count).await;
    }

    /// Blocks until all workers have ended.
    ///
    /// # Errors
    /// Fails if a worker failed or panicked.
    pub(crate) fn join(self) -> io::Result<()> {
        for thread in self.handles {
            let ended = thread.join();
            ended.map_err(|_| io::Error::other("worker thread panicked"))??;
        }
        Ok(())
    }
}

/// Counts a thread as ended when it is dropped.
#[derive(Debug)]
struct ThreadGuard(Arc<watch::Sender<usize>>);

impl Drop for ThreadGuard {
    fn drop(&mut self) {
        self.0.send_modify(|ended| *ended += 1);
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::shares;

    #[test]
    fn every_listener_has_a_worker_and_every_worker_has_a_listener() {
        for (listeners, workers) in [(1, 1), (1, 3), (3, 1), (2, 3), (5, 3), (4, 4)] {
            let bound = (0..listeners).map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
            let shares = shares(bound.collect(), workers).unwrap();
            assert_eq!(shares.len(), workers);
            assert!(shares.iter().all(|share| !share.is_empty()));
            let addresses = shares.iter().flatten().map(|it| it.local_addr().unwrap());
            let mut addresses: Vec<_> = addresses.collect();
            assert_eq!(addresses.len(), workers.max(listeners));
            addresses.sort_unstable();
            addresses.dedup();
            assert_eq!(addresses.len(), listeners);
        }
    }
}
