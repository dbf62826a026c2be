//! Listeners, TLS, admission, drain: everything between a socket and a request.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `accept` | takes connections, at a bounded rate, through shortages of file descriptors |
//! | `admission` | how many connections there may be, in all and from one address |
//! | `connection` | one connection: proxy header, TLS, requests, goodbye |
//! | `drain` | sends clients away a few at a time |
//! | `hosts` | names under which the server answers |
//! | `http2` | requests and WebSockets on the streams of a connection |
//! | `listener` | sockets that listen |
//! | `newcomer` | connections before their first request |
//! | `proxy` | what trusted proxies say of a client's address |
//! | `spares` | file descriptors to fall back on |
//! | `staying` | answers that go on keep a place |
//! | `stop` | the end of the server, in phases |
//! | `timed` | bodies that must come in time |
//! | `tls` | the certificate, and its renewal |
//! | `workers` | threads with a runtime and a listener each |

mod accept;
mod admission;
mod connection;
mod drain;
#[cfg(fuzzing)]
pub mod fuzzing;
mod hosts;
mod http2;
mod listener;
mod newcomer;
mod proxy;
mod spares;
mod staying;
mod stop;
mod timed;
mod tls;
mod workers;

use std::sync::Arc;

use axum::Router;
use linerate_budget::Budget;
use tokio::net::TcpListener;

use crate::config::ServerOptions;

pub(crate) use admission::CONNECTION_BYTES;
pub use admission::{Admission, Full, Visit};
pub(crate) use connection::{
    DEAD_PEER_TIMEOUT, HANDSHAKE_TIMEOUT, HEAD_BYTES_MAX, HEAD_TIMEOUT, REQUESTS_TIMEOUT,
};
pub use drain::send_away;
pub use hosts::Hosts;
pub(crate) use hosts::names_this_machine;
pub use listener::listen;
pub use spares::Spares;
pub use stop::{Phase, Stop, Stopped};
pub(crate) use timed::BODY_TIMEOUT;
pub use tls::{Certificate, CertificateError};
pub use workers::{Running, Seat, Workers};

/// What the listeners of all workers share.
#[derive(Debug)]
pub struct Front {
    /// Who is let in.
    pub admission: Arc<Admission>,
    /// The names under which it answers.
    pub hosts: Hosts,
    /// File descriptors to fall back on.
    pub spares: Spares,
    /// When to say goodbye.
    pub stopped: Stopped,
    /// The certificate, if TLS is spoken.
    pub certificate: Option<Arc<Certificate>>,
    /// Whether trusted proxies send a header of the PROXY protocol.
    pub has_proxy_header: bool,
    /// How many workers share the bound on accepted connections.
    pub workers: usize,
}

impl Front {
    /// Makes one of what is configured. Memory has no bound.
    ///
    /// # Errors
    /// The certificate can't be used.
    pub fn new(
        options: &ServerOptions,
        hosts: Hosts,
        workers: usize,
        stopped: Stopped,
    ) -> Result<Self, CertificateError> {
        Self::within(Budget::unbounded(), options, hosts, workers, stopped)
    }

    /// As [`new`](Self::new), for a server whose memory is counted in `budget`: while it is tight, nobody is let in.
    ///
    /// # Errors
    /// The certificate can't be used.
    pub fn within(
        budget: Budget,
        options: &ServerOptions,
        hosts: Hosts,
        workers: usize,
        stopped: Stopped,
    ) -> Result<Self, CertificateError> {
        let certificate = options.tls.as_ref().map(Certificate::load).transpose()?;
        Ok(Self {
            admission: Arc::new(Admission::within(budget, options)),
            hosts,
            spares: Spares::new(workers.max(1)),
            stopped,
            certificate: certificate.map(Arc::new),
            has_proxy_header: options.proxy_protocol,
            workers: workers.max(1),
        })
    }

    /// Serves `app` on a listener until the server stops, then until its connections are gone.
    ///
    /// Each request has a [`Peer`](crate::transport::Peer) and a [`Visit`] among its extensions.
    ///
    /// # Errors
    /// The listener is none.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, app: Router) -> std::io::Result<()> {
        accept::serve(self, listener, app).await
    }
}

#[cfg(test)]
mod tests;
