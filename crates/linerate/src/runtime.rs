//! Async runtimes other than tokio, for example smol.
//!
//! By default, `linerate` starts its tasks on tokio and uses tokio's timers. A [`Runtime`] replaces
//! both; it is set with [`Server::with_runtime`](crate::Server::with_runtime) and
//! [`Client::with_runtime`](crate::Client::with_runtime), or given to
//! [`WebSocket::from_parts_with_runtime`](crate::WebSocket::from_parts_with_runtime). Everything
//! else stays the same: keepalive, time limits, batching of writes, limits on memory.
//!
//! Streams must implement tokio's `AsyncRead` and `AsyncWrite`, which do not need tokio's runtime.
//! With the feature `futures-io`, `FuturesIo` implements them for the streams of smol, async-std
//! and other runtimes that use the traits of the crate `futures-io`.
//!
//! On another runtime, servers and clients speak only HTTP/1.1, and a client opens WebSockets only
//! on streams that are already connected, with
//! [`connect_over`](crate::Client::connect_over). [`Backoff`](crate::Backoff) does not wait there,
//! but computes delays with [`next_delay_after`](crate::Backoff::next_delay_after). Streams that
//! must stay on one thread, as those of monoio and compio, are not supported, because tasks must be
//! `Send`.

#[cfg(feature = "futures-io")]
mod futures_io;
mod timer;

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

#[cfg(feature = "futures-io")]
pub use futures_io::FuturesIo;
pub(crate) use timer::{Elapsed, Timeout, Timer};

/// A task for a [`Runtime`].
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A future that is ready at a certain time; see [`Runtime::sleep_until`].
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What the library needs from an async runtime.
///
/// This is smol:
///
/// ```
/// use linerate::{Client, Server, runtime::{Runtime, Sleep, Task}};
///
/// struct Smol;
///
/// impl Runtime for Smol {
///     fn spawn(&self, task: Task) {
///         smol::spawn(task).detach();
///     }
///
///     fn sleep_until(&self, deadline: std::time::Instant) -> Sleep {
///         Box::pin(async move { _ = smol::Timer::at(deadline).await })
///     }
/// }
///
/// # fn main() -> linerate::Result<()> {
/// smol::block_on(async {
///     let (ours, theirs) = tokio::io::duplex(4096); // works with any runtime
///     let serving = smol::spawn(async move {
///         let incoming = Server::new().with_runtime(Smol).accept(theirs).await?;
///         incoming.accept().await?.send("hello").await
///     });
///     let client = Client::new().with_runtime(Smol);
///     let mut ws = client.connect_over(ours, "ws://localhost/").await?;
///     assert_eq!(ws.recv().await?, Some("hello".into()));
///     serving.await
/// })
/// # }
/// ```
pub trait Runtime: Send + Sync + 'static {
    /// Starts a task in the background.
    ///
    /// The task must run even if the application's own task waits. If it is dropped before it
    /// completes, the connection for which it is responsible ends.
    fn spawn(&self, task: Task);

    /// Returns a future that is ready at `deadline`, or as soon as possible if that is in the past.
    ///
    /// It must not be ready earlier. The library drops it when it is no longer needed.
    fn sleep_until(&self, deadline: Instant) -> Sleep;
}

/// The runtime of a client, a server or a connection.
#[derive(Clone, Default)]
pub(crate) enum RuntimeHandle {
    Other(Arc<dyn Runtime>),
    #[default]
    Tokio,
}

impl RuntimeHandle {
    pub(crate) fn new(runtime: impl Runtime) -> Self {
        Self::Other(Arc::new(runtime))
    }

    pub(crate) fn is_tokio(&self) -> bool {
        matches!(self, Self::Tokio)
    }

    /// Starts a task in the background.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match self {
            Self::Other(runtime) => runtime.spawn(Box::pin(task)),
            Self::Tokio => _ = tokio::spawn(task),
        }
    }

    /// Returns a timer that is ready at `deadline`.
    pub(crate) fn timer(&self, deadline: tokio::time::Instant) -> Timer {
        Timer::new(self, deadline)
    }

    /// Waits for `duration`.
    pub(crate) fn sleep(&self, duration: Duration) -> Timer {
        self.timer(after(duration))
    }

    /// Waits for `future` until `deadline`.
    pub(crate) fn timeout_at<F: Future>(
        &self,
        deadline: tokio::time::Instant,
        future: F,
    ) -> Timeout<F> {
        Timeout::new(self.timer(deadline), future)
    }

    /// Waits for `future`, at most for `duration`.
    pub(crate) fn timeout<F: Future>(&self, duration: Duration, future: F) -> Timeout<F> {
        self.timeout_at(after(duration), future)
    }
}

impl fmt::Debug for RuntimeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Other(_) => "Other",
            Self::Tokio => "Tokio",
        })
    }
}

/// Returns the time after `duration`, or 30 years from now if there is no such time.
fn after(duration: Duration) -> tokio::time::Instant {
    const FAR_FUTURE: Duration = Duration::from_secs(86_400 * 365 * 30);
    let now = tokio::time::Instant::now();
    now.checked_add(duration).unwrap_or(now + FAR_FUTURE)
}
