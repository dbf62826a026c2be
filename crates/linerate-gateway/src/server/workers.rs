//! Worker threads: one tokio runtime and one listener each, so that a connection lives and dies on its worker.

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

/// How long a thread for blocking work waits for more. What it has allocated and another thread has freed goes back to the
/// system when it ends, with mimalloc.
const BLOCKING_IDLE: Duration = Duration::from_secs(1);

/// Listeners on one address, one for each worker; the kernel spreads connections over them.
#[derive(Debug)]
pub struct Workers {
    listeners: Vec<std::net::TcpListener>,
    address: SocketAddr,
}

/// What a worker starts with.
#[derive(Debug)]
pub struct Seat {
    /// Which of the workers it is, from 0.
    pub index: usize,
    /// Its listener.
    pub listener: TcpListener,
}

/// Threads that run.
#[derive(Debug)]
pub struct Running {
    threads: Vec<JoinHandle<io::Result<()>>>,
    ended: Arc<Notify>,
}

impl Workers {
    /// Binds the address for so many workers; 0 for one each core.
    ///
    /// # Errors
    /// The address is in use, or none of this machine.
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

    /// Returns the address, with the port that was picked.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns how many workers there are.
    pub fn count(&self) -> usize {
        self.listeners.len()
    }

    /// Runs `serve` on a thread of each worker.
    ///
    /// # Errors
    /// A thread can't be started.
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
                // Also when it panics: the others must not wait for a worker that is gone.
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
    /// Waits until one of the workers has ended, for whatever reason.
    pub async fn one_ended(&self) {
        self.ended.notified().await;
    }

    /// Waits until all of them have.
    ///
    /// # Errors
    /// One failed or panicked.
    pub fn join(self) -> io::Result<()> {
        for thread in self.threads {
            let ended = thread.join();
            ended.map_err(|_| io::Error::other("a worker panicked"))??;
        }
        Ok(())
    }
}

/// Tells that a thread has ended when it is dropped.
#[derive(Debug)]
struct Ended(Arc<Notify>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}
