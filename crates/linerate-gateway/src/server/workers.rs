//! Worker threads with one tokio runtime and one listener each, so that a connection stays on its
//! worker.

use std::{
    future::Future,
    io,
    net::SocketAddr,
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch};

use super::listener::listen;

/// Idle time after which a thread for blocking work ends. With mimalloc, memory that it allocated
/// and another thread freed returns to the system only then.
const BLOCKING_IDLE: Duration = Duration::from_secs(1);

/// Maximum number of workers.
const WORKERS_MAX: usize = 1_024;

/// Listeners on one address, one for each worker; the kernel distributes connections over them.
#[derive(Debug)]
pub(crate) struct Workers {
    listeners: Vec<std::net::TcpListener>,
    address: SocketAddr,
}

/// Running worker threads.
#[derive(Debug)]
pub(crate) struct Threads {
    handles: Vec<JoinHandle<io::Result<()>>>,
    /// The number of threads that have ended.
    ended: watch::Receiver<usize>,
}

impl Workers {
    /// Binds the address for `workers` workers; 0 for one per core.
    ///
    /// # Errors
    /// Fails if the address is in use, or does not belong to this machine.
    pub(crate) fn bind(address: SocketAddr, workers: usize) -> io::Result<Self> {
        let workers = match workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let workers = workers.min(WORKERS_MAX);
        let listeners = listen(address, workers)?;
        let address = listeners
            .first()
            .map_or(Ok(address), |it| it.local_addr())?;
        Ok(Self { listeners, address })
    }

    /// Returns the address, with the actual port if port 0 was requested.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.listeners.len()).unwrap_or(u16::MAX)
    }

    /// Runs `serve` on a separate thread for each worker, with the index of the worker, from 0, and
    /// its listener.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub(crate) fn start<S, F>(self, serve: S) -> io::Result<Threads>
    where
        S: Fn(u16, TcpListener) -> F + Clone + Send + 'static,
        F: Future<Output = io::Result<()>>,
    {
        let (count, ended) = watch::channel(0);
        let count = Arc::new(count);
        let mut handles = Vec::new();
        for (index, listener) in (0..).zip(self.listeners) {
            let (serve, count) = (serve.clone(), count.clone());
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            handles.push(thread.spawn(move || {
                // This also runs on a panic, because the others must not wait for a worker that has
                // ended.
                let _ended = ThreadGuard(count);
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .thread_keep_alive(BLOCKING_IDLE)
                    .build()?;
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener)?;
                    serve(index, listener).await
                })
            })?);
        }
        Ok(Threads { handles, ended })
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
