//! Everything between a socket and a request: listeners, TLS, admission, shutting down.
//!
//! | module | contents |
//! | --- | --- |
//! | `accept` | accepts connections at a limited rate, even when file descriptors run out |
//! | `admission` | limits on connections, in total and per address |
//! | `connection` | a single connection: proxy header, TLS, HTTP version, shutdown |
//! | `connection_guard` | keeps the slots of a connection for as long as something serves it |
//! | `detach` | connections that leave the HTTP server while a response is streamed |
//! | `hosts` | host names that the server accepts |
//! | `http2` | requests and WebSockets on HTTP/2 streams |
//! | `listener` | listening sockets, and those that another process has bound |
//! | `pending_connection` | connections before their first request |
//! | `peer` | the origin of a request |
//! | `proxy` | client addresses reported by trusted proxies |
//! | `refusal` | refuses connections when all slots are taken |
//! | `request` | answers requests, which know where they come from |
//! | `spares` | spare file descriptors |
//! | `guarded_body` | response bodies that keep their slot among the connections |
//! | `stop` | the phases of serving and shutting down |
//! | `timed` | request bodies with a time limit |
//! | `tls` | the certificate and its renewal, and encrypted connections |
//! | `upgraded` | connections that become connections of the reactor |
//! | `workers` | threads with their own runtime and listeners |

mod accept;
mod admission;
mod connection;
mod connection_guard;
mod detach;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod guarded_body;
mod hosts;
mod http2;
mod listener;
mod peer;
mod pending_connection;
mod proxy;
mod refusal;
mod request;
mod spares;
mod stop;
mod timed;
mod tls;
mod upgraded;
mod workers;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::Router;
use linerate_budget::Budget;
use tokio::net::TcpListener;

use crate::config::ServerOptions;

pub(crate) use admission::CONNECTION_BYTES;
pub(crate) use admission::{Admission, LimitReached};
pub(crate) use connection::{HANDSHAKE_TIMEOUT, HEAD_TIMEOUT};
pub use connection_guard::ConnectionGuard;
pub(crate) use connection_guard::ConnectionPlace;
pub(crate) use detach::{Detached, Detacher, continue_with};
pub(crate) use hosts::Hosts;
pub(crate) use hosts::names_this_machine;
pub(crate) use listener::{Endpoint, EndpointKind};
pub use peer::Peer;
pub(crate) use request::{HEAD_BYTES_MAX, LongRequest, REQUESTS_TIMEOUT};
pub(crate) use spares::Spares;
pub(crate) use stop::{Phase, Stop, Stopped};
pub(crate) use timed::BODY_TIMEOUT;
pub(crate) use tls::Certificate;
pub use tls::CertificateError;
pub(crate) use upgraded::adoption;
pub(crate) use workers::{Threads, Workers};

/// State shared by the listeners of all workers.
#[derive(Debug)]
pub(crate) struct Frontend {
    /// Connection limits.
    pub admission: Arc<Admission>,
    /// The host names that the server accepts.
    pub hosts: Hosts,
    /// Spare file descriptors.
    pub spares: Spares,
    /// The shutdown phase.
    pub stopped: Stopped,
    /// The certificate; `None` without TLS.
    pub certificate: Option<Arc<Certificate>>,
    /// True if trusted proxies send a PROXY protocol header.
    pub has_proxy_header: bool,
    /// How long a peer may acknowledge nothing.
    pub dead_peer_timeout: Duration,
    /// Number of loops that share the limit on accepted connections per second.
    loops: AtomicUsize,
}

impl Frontend {
    /// Creates the state from the configuration, without a memory limit.
    ///
    /// # Errors
    /// Fails if the certificate cannot be used.
    pub(crate) fn new(
        options: &ServerOptions,
        hosts: Hosts,
        loops: usize,
        stopped: Stopped,
    ) -> Result<Self, CertificateError> {
        Self::within(Budget::unbounded(), options, hosts, loops, stopped)
    }

    /// Like [`new`](Self::new), for a server whose memory is accounted in `budget`. Connections are
    /// refused while memory is tight.
    ///
    /// # Errors
    /// Fails if the certificate cannot be used.
    pub(crate) fn within(
        budget: Budget,
        options: &ServerOptions,
        hosts: Hosts,
        loops: usize,
        stopped: Stopped,
    ) -> Result<Self, CertificateError> {
        let certificate = options.tls.as_ref().map(Certificate::load).transpose()?;
        Ok(Self {
            admission: Arc::new(Admission::new(budget, options)),
            hosts,
            spares: Spares::new(loops.max(1)),
            stopped,
            certificate: certificate.map(Arc::new),
            has_proxy_header: options.proxy_protocol,
            dead_peer_timeout: options.dead_peer_timeout,
            loops: AtomicUsize::new(loops.max(1)),
        })
    }

    /// Changes the number of loops that share the limit on accepted connections per second.
    pub(crate) fn set_loops(&self, loops: usize) {
        self.loops.store(loops.max(1), Ordering::Relaxed);
    }

    /// Serves `app` on a listener until the server stops, and then until all connections are
    /// closed.
    ///
    /// Each request has a [`Peer`] and a [`ConnectionGuard`] among its extensions.
    ///
    /// # Errors
    /// Fails if accepting connections fails permanently because the socket is not a listener.
    pub(crate) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        app: Router,
    ) -> std::io::Result<()> {
        accept::serve(self, listener, app).await
    }
}

#[cfg(test)]
mod tests;
