//! Errors of connecting to a server.

use std::{fmt, io, net::SocketAddr, time::Duration};

use super::{ProxyError, RedirectError};

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The application's address check rejected all addresses of the server.
    #[error("address check allows none of the server's addresses ({addresses} resolved)")]
    AddressesDenied {
        /// The number of addresses.
        addresses: usize,
    },
    /// None of the addresses accepted a connection.
    #[error(fmt = fmt_connect_failed)]
    ConnectFailed {
        /// The address whose attempt failed last.
        address: SocketAddr,
        /// The number of addresses tried.
        attempts: usize,
        /// Why that attempt failed.
        source: io::Error,
    },
    /// The server cannot be reached over HTTP/3.
    #[cfg(feature = "http3")]
    #[error("{0}")]
    Http3(#[source] Http3Error),
    /// ALPN selected a protocol over which this client cannot open a WebSocket. This happens if the
    /// client's TLS configuration offers such a protocol.
    #[error("cannot open a WebSocket over the selected protocol; check the ALPN protocols")]
    ProtocolUnsupported,
    /// The proxy failed or refused the connection.
    #[error("proxy connection failed: {0}")]
    Proxy(#[source] ProxyError),
    /// A redirect was not followed.
    #[error("redirect not followed: {0}")]
    Redirect(#[source] RedirectError),
    /// The host name could not be resolved.
    #[error("cannot resolve host name: {0}")]
    ResolveFailed(#[source] io::Error),
    /// A phase exceeded its time limit.
    #[error("{phase} timed out after {elapsed:.3?}; the limit is {limit:?}")]
    TimedOut {
        /// The phase that took too long.
        phase: Phase,
        /// The time since the phase began or, if the limit is the total for all phases, since the
        /// first phase began.
        elapsed: Duration,
        /// The time limit.
        limit: Duration,
    },
    /// The TLS handshake failed, or the certificate is not trusted.
    #[error("TLS handshake failed: {0}")]
    Tls(#[source] io::Error),
    /// The URL starts with `wss://`, but this build has no TLS.
    #[cfg(not(feature = "rustls"))]
    #[error("wss:// requires the feature `rustls`")]
    TlsMissing,
}

/// Why a server cannot be reached over HTTP/3.
#[cfg(feature = "http3")]
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Http3Error {
    /// The URL starts with `ws://`, but HTTP/3 always uses TLS.
    #[error("HTTP/3 requires TLS: the URL must start with wss://")]
    Insecure,
    /// A proxy is configured, but proxies support only TCP.
    #[error("HTTP/3 cannot use a proxy; connect without one")]
    Proxied,
    /// The server's settings do not allow WebSockets (RFC 9220 §3).
    #[error("server does not allow WebSockets over HTTP/3")]
    WebSocketsMissing,
}

/// A phase of opening a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// Connecting to one of the server's addresses.
    Connect,
    /// The opening handshake: our request and the server's response.
    Handshake,
    /// Asking a proxy to connect to the server.
    Proxy,
    /// Resolving a host name to addresses.
    Resolve,
    /// The TLS handshake.
    Tls,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connection attempt",
            Self::Handshake => "opening handshake",
            Self::Proxy => "proxy request",
            Self::Resolve => "name resolution",
            Self::Tls => "TLS handshake",
        })
    }
}

impl DialError {
    /// Returns whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::AddressesDenied { .. } | Self::ProtocolUnsupported | Self::Redirect(_) => false,
            #[cfg(feature = "http3")]
            Self::Http3(_) => false,
            #[cfg(not(feature = "rustls"))]
            Self::TlsMissing => false,
            Self::Proxy(error) => error.is_transient(),
            Self::ConnectFailed { .. }
            | Self::ResolveFailed(_)
            | Self::TimedOut { .. }
            | Self::Tls(_) => true,
        }
    }
}

/// Writes that none of the addresses accepted a connection, and which was tried last.
fn fmt_connect_failed(
    address: &SocketAddr,
    attempts: &usize,
    source: &io::Error,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match attempts {
        1 => write!(f, "cannot connect to {address}: {source}"),
        _ => write!(
            f,
            "cannot connect to any of {attempts} addresses, {address} last: {source}"
        ),
    }
}
