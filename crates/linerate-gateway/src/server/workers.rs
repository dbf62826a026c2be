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

use tokio::{
    net::TcpListener,
    runtime::{Builder, Handle, Runtime},
    sync::watch,
};

use super::listener::listen;

/// Idle time after which a thread for blocking work ends. With mimalloc, memory that it allocated
/// and another thread freed returns to the system only then.
const BLOCKING_IDLE: Duration = Duration::from_secs(1);

/// Maximum number of workers.
const WORKERS_MAX: usize = 1_024;

/// Runtimes for the workers, and listeners on one address, one for each worker; the kernel
/// distributes connections over them.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<(std::net::TcpListener, IdleRuntime)>,
    address: SocketAddr,
}

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
        let with_runtime = |listener| Ok((listener, IdleRuntime::new()?));
        let workers = listeners.into_iter().map(with_runtime);
        let workers = workers.collect::<io::Result<_>>()?;
        Ok(Self { workers, address })
    }

    /// Returns the address, with the actual port if port 0 was requested.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of workers.
    pub(crate) fn count(&self) -> u16 {
        u16::try_from(self.workers.len()).unwrap_or(u16::MAX)
    }

    /// Returns the runtime of the worker if there is only one.
    pub(crate) fn only_runtime(&self) -> Option<&Handle> {
        match &*self.workers {
            [(_, runtime)] => runtime.0.as_ref().map(Runtime::handle),
            _ => None,
        }
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
        for (index, (listener, runtime)) in (0..).zip(self.workers) {
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
                    let listener = TcpListener::from_std(listener)?;
                    serve(index, listener).await
                })
            })?);
        }
        Ok(Threads { handles, ended })
    }
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
