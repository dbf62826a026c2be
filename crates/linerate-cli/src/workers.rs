//! Worker threads, each with its own tokio runtime and listener. A connection stays on its worker
//! for its whole lifetime.

use std::{future::Future, net::SocketAddr, sync::Arc, thread};

use anyhow::Context;
use clap::Args;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::{
    net::TcpListener,
    runtime::Runtime,
    sync::{Notify, watch},
};

use crate::platform::{self, StopSignals};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 1_024;

/// The address to listen on, and the number of threads.
#[derive(Args, Clone, Debug)]
// The commands' own `Arguments` already define a group with this name.
#[group(skip)]
pub(crate) struct Arguments {
    /// Address and port to listen on; port 0 picks a free one and prints it.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// Number of worker threads [default: one per CPU core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) workers: Option<u16>,
}

impl Arguments {
    /// Returns the number of worker threads.
    pub(crate) fn workers(&self) -> usize {
        match self.workers {
            Some(workers) => usize::from(workers),
            None => thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// One listener per worker, all on the same address. On Linux, the kernel distributes connections
/// among them.
#[derive(Debug)]
pub(crate) struct Workers {
    listeners: Vec<std::net::TcpListener>,
    address: SocketAddr,
    stop: StopSignal,
}

impl Workers {
    /// Binds the listeners, and starts listening for stop signals.
    pub(crate) fn bind(arguments: &Arguments) -> anyhow::Result<Self> {
        let workers = arguments.workers();
        let first = listen(arguments.listen, false)
            .with_context(|| format!("cannot listen on {}", arguments.listen))?;
        let address = first.local_addr()?;
        let mut listeners = vec![first];
        for _ in 1..workers {
            // Only Linux distributes connections among sockets that share a port. Elsewhere, all
            // workers accept from the same socket.
            let next = match cfg!(target_os = "linux") {
                true => listen(address, true)?,
                false => listeners[0].try_clone()?,
            };
            listeners.push(next);
        }
        // Signals are handled from here on: once the address is printed, a signal must stop the
        // server gracefully.
        let stop = StopSignal::new()?;
        Ok(Self {
            listeners,
            address,
            stop,
        })
    }

    /// Returns the address, with the actual port if port 0 was given.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs `serve` on each worker until ctrl-c, SIGTERM or the failure of a worker, then waits
    /// until all workers are done.
    pub(crate) fn run<S, F>(self, serve: S) -> anyhow::Result<()>
    where
        S: Fn(TcpListener, Shutdown) -> F + Clone + Send + 'static,
        F: Future<Output = anyhow::Result<()>>,
    {
        let (stop, stopped) = watch::channel(false);
        let ended = Arc::new(Notify::new());
        let mut threads = Vec::new();
        for (index, listener) in self.listeners.into_iter().enumerate() {
            let (serve, shutdown) = (serve.clone(), Shutdown(stopped.clone()));
            let ended = ended.clone();
            let thread = thread::Builder::new().name(format!("worker-{index}"));
            threads.push(thread.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()?;
                let served = runtime.block_on(async {
                    listener.set_nonblocking(true)?;
                    serve(TcpListener::from_std(listener)?, shutdown).await
                });
                ended.notify_one();
                served
            })?);
        }
        self.stop.wait(&ended);
        stop.send_replace(true);
        for thread in threads {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("a worker panicked"))??;
        }
        Ok(())
    }
}

/// Lets a worker wait for the request to stop.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// Waits until the worker must stop.
    pub(crate) async fn wait(mut self) {
        // An error means that the sender was dropped, which is also a reason to stop.
        _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Binds one listener. If `shared` is false, fails if the port is already in use, so that a second
/// server cannot start on the same port.
fn listen(address: SocketAddr, shared: bool) -> anyhow::Result<std::net::TcpListener> {
    if !shared {
        // Only the listeners of one process may share a port.
        reusable_socket(address)?.bind(&address.into())?;
    }
    let socket = reusable_socket(address)?;
    platform::share_port(&socket)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn reusable_socket(address: SocketAddr) -> std::io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    platform::reuse_address(&socket)?;
    Ok(socket)
}

/// Ctrl-c and SIGTERM, for threads without a runtime.
#[derive(Debug)]
pub(crate) struct StopSignal {
    runtime: Runtime,
    signals: StopSignals,
}

impl StopSignal {
    /// Starts listening for the signals.
    pub(crate) fn new() -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let signals = runtime.block_on(async { StopSignals::new() })?;
        Ok(Self { runtime, signals })
    }

    /// Waits for a signal, or until a worker ends.
    pub(crate) fn wait(mut self, ended: &Notify) {
        self.runtime.block_on(async {
            tokio::select! {
                () = self.signals.recv() => {}
                () = ended.notified() => {}
            }
        });
    }
}
