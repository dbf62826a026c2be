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

use tokio::{net::TcpListener, sync::Notify};

use super::listener::listen;

/// Idle time after which a thread for blocking work ends. With mimalloc, memory that it allocated
/// and another thread freed returns to the system only then.
const BLOCKING_IDLE: Duration = Duration::from_secs(1);

/// Listeners on one address, one for each worker; the kernel distributes connections over them.
#[derive(Debug)]
pub struct Workers {
    listeners: Vec<std::net::TcpListener>,
    address: SocketAddr,
}

/// The resources of a worker when it starts.
#[derive(Debug)]
pub struct Seat {
    /// Index of the worker, from 0.
    pub index: usize,
    /// Its listener.
    pub listener: TcpListener,
}

/// Running worker threads.
#[derive(Debug)]
pub struct Running {
    threads: Vec<JoinHandle<io::Result<()>>>,
    ended: Arc<Notify>,
}

impl Workers {
    /// Binds the address for `workers` workers; 0 for one per core.
    ///
    /// # Errors
    /// Fails if the address is in use, or does not belong to this machine.
    pub fn bind(address: SocketAddr, workers: usize) -> io::Result<Self> {
        let workers = match workers {
            0 => thread::available_parallelism().map_or(1, usize::from),
            workers => workers,
        };
        let listeners = listen(address, workers)?;
        let address = listeners
            .first()
            .map_or(Ok(address), |it| it.local_addr())?;
        Ok(Self { listeners, address })
    }

    /// Returns the address, with the actual port if port 0 was requested.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the number of workers.
    pub fn count(&self) -> usize {
        self.listeners.len()
    }

    /// Runs `serve` on a separate thread for each worker.
    ///
    /// # Errors
    /// Fails if a thread cannot be started.
    pub fn start<S, F>(self, serve: S) -> io::Result<Running>
    where
        S: Fn(Seat) -> F + Clone + Send + 'static,
        F: Future<Output = io::Result<()>>,
    {
        let ended = Arc::new(Notify::new());
        let mut threads = Vec::new();
        for (index, listener) in self.listeners.into_iter().enumerate() {
            let (serve, ended) = (serve.clone(), ended.clone());
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            threads.push(thread.spawn(move || {
                // This also runs on a panic, because the others must not wait for a worker that has
                // ended.
                let _ended = Ended(ended);
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .thread_keep_alive(BLOCKING_IDLE)
                    .build()?;
                runtime.block_on(async {
                    let listener = TcpListener::from_std(listener)?;
                    serve(Seat { index, listener }).await
                })
            })?);
        }
        Ok(Running { threads, ended })
    }
}

impl Running {
    /// Waits until one of the workers has ended, for any reason.
    pub async fn one_ended(&self) {
        self.ended.notified().await;
    }

    /// Waits until all workers have ended.
    ///
    /// # Errors
    /// Fails if a worker failed or panicked.
    pub fn join(self) -> io::Result<()> {
        for thread in self.threads {
            let ended = thread.join();
            ended.map_err(|_| io::Error::other("worker thread panicked"))??;
        }
        Ok(())
    }
}

/// Notifies that a thread has ended when it is dropped.
#[derive(Debug)]
struct Ended(Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
