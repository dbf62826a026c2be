//! The WebSockets of an axum application: limiting their number, and closing them at shutdown.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use crate::{
    link::{self, Slot},
    runtime::RuntimeHandle,
};

/// The open WebSockets of an application, to limit their number and to close them at shutdown.
///
/// axum and hyper know nothing about a connection after its upgrade: their graceful shutdown does
/// not wait for WebSockets, which are cut off when the process ends. Add this as an
/// [`Extension`](axum::Extension), and close the WebSockets when the server has stopped:
///
/// ```no_run
/// use std::time::Duration;
///
/// use axum::{Extension, Router};
/// use linerate::axum::Connections;
///
/// # async fn run(app: Router) -> std::io::Result<()> {
/// let connections = Connections::new().with_connections_max(50_000);
/// let app = app.layer(Extension(connections.clone()));
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:9001").await?;
/// axum::serve(listener, app)
///     .with_graceful_shutdown(async { _ = tokio::signal::ctrl_c().await })
///     .await?;
/// connections.close_all(Duration::from_secs(5)).await;
/// # Ok(())
/// # }
/// ```
///
/// Clones are the same connections. Without an extension, for instance for only some routes, use
/// [`WebSocketUpgrade::with_connections`](super::WebSocketUpgrade::with_connections).
#[derive(Clone)]
pub struct Connections {
    /// Created for the first connection, because it needs a runtime.
    connections: Arc<OnceLock<link::Connections>>,
    connections_max: usize,
}

impl Connections {
    /// Creates an empty set of connections.
    pub fn new() -> Self {
        Self {
            connections: Arc::default(),
            connections_max: 100_000,
        }
    }

    /// Sets how many WebSockets may be open at a time; further requests are refused with 503. Has
    /// no effect after the first request. Default: 100,000.
    pub fn with_connections_max(mut self, connections_max: usize) -> Self {
        self.connections_max = connections_max;
        self
    }

    /// Returns the number of WebSockets that are open or being opened.
    pub fn len(&self) -> usize {
        self.connections.get().map_or(0, link::Connections::len)
    }

    /// Returns whether no WebSocket is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes all WebSockets with code 1001 and waits at most `timeout` for their ends; returns how
    /// many are still open then. New requests are refused with 503 from now on.
    ///
    /// A connection ends when its peer has answered, or after its
    /// [`close_timeout`](crate::Config::close_timeout), and when its handler has returned.
    ///
    /// # Cancel safety
    /// If the future is dropped, the closing handshakes continue in the background.
    pub async fn close_all(&self, timeout: Duration) -> usize {
        self.connections().close_all(timeout).await
    }

    /// Returns a slot for a connection, unless there are too many or all are being closed.
    pub(super) fn take_slot(&self) -> Option<Slot> {
        let connections = self.connections();
        if connections.is_closing() {
            return None;
        }
        connections.take_slot()
    }

    fn connections(&self) -> &link::Connections {
        let create = || link::Connections::new(self.connections_max, &RuntimeHandle::Tokio);
        self.connections.get_or_init(create)
    }
}

impl Default for Connections {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections")
            .field("len", &self.len())
            .field("connections_max", &self.connections_max)
            .finish_non_exhaustive()
    }
}
