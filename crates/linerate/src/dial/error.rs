//! Errors of connecting to a server.

use std::{fmt, io, net::SocketAddr, time::Duration};

use super::{Phase, ProxyError, RedirectError};

/// Why a server could not be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum DialError {
    /// The application's address check rejected all addresses of the server.
    AddressesDenied {
        /// The number of addresses.
        addresses: usize,
    },
    /// None of the addresses accepted a connection.
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
    Http3(Http3Error),
    /// ALPN selected a protocol over which this client cannot open a WebSocket. This happens if the
    /// client's TLS configuration offers such a protocol.
    ProtocolUnsupported,
    /// The proxy failed or refused the connection.
    Proxy(ProxyError),
    /// A redirect was not followed.
    Redirect(RedirectError),
    /// The host name could not be resolved.
    ResolveFailed(io::Error),
    /// A phase exceeded its time limit.
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
    Tls(io::Error),
    /// The URL starts with `wss://`, but this build has no TLS.
    #[cfg(not(feature = "rustls"))]
    TlsMissing,
}

/// Why a server cannot be reached over HTTP/3.
#[cfg(feature = "http3")]
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Http3Error {
    /// The URL starts with `ws://`, but HTTP/3 always uses TLS.
    Insecure,
    /// A proxy is configured, but proxies support only TCP.
    Proxied,
    /// The server's settings do not allow WebSockets (RFC 9220 §3).
    WebSocketsMissing,
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

impl fmt::Display for DialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AddressesDenied { addresses } => {
                write!(
                    f,
                    "address check allows none of the server's addresses ({addresses} resolved)"
                )
            }
            Self::ConnectFailed {
                address,
                attempts: 1,
                source,
            } => write!(f, "cannot connect to {address}: {source}"),
            Self::ConnectFailed {
                address,
                attempts,
                source,
            } => write!(
                f,
                "cannot connect to any of {attempts} addresses, {address} last: {source}"
            ),
            #[cfg(feature = "http3")]
            Self::Http3(error) => error.fmt(f),
            Self::ProtocolUnsupported => f.write_str(
                "cannot open a WebSocket over the selected protocol; check the ALPN protocols",
            ),
            Self::Proxy(error) => write!(f, "proxy connection failed: {error}"),
            Self::Redirect(error) => write!(f, "redirect not followed: {error}"),
            Self::ResolveFailed(error) => write!(f, "cannot resolve host name: {error}"),
            Self::TimedOut {
                phase,
                elapsed,
                limit,
            } => write!(
                f,
                "{phase} timed out after {elapsed:.3?}; the limit is {limit:?}"
            ),
            Self::Tls(error) => write!(f, "TLS handshake failed: {error}"),
            #[cfg(not(feature = "rustls"))]
            Self::TlsMissing => f.write_str("wss:// requires the feature `rustls`"),
        }
    }
}

impl std::error::Error for DialError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::ConnectFailed { source, .. } => Some(source),
            #[cfg(feature = "http3")]
            Self::Http3(error) => Some(error),
            Self::Proxy(error) => Some(error),
            Self::Redirect(error) => Some(error),
            Self::ResolveFailed(error) | Self::Tls(error) => Some(error),
            #[cfg(not(feature = "rustls"))]
            Self::TlsMissing => None,
            Self::AddressesDenied { .. } | Self::ProtocolUnsupported | Self::TimedOut { .. } => {
                None
            }
        }
    }
}

#[cfg(feature = "http3")]
impl fmt::Display for Http3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Insecure => "HTTP/3 requires TLS: the URL must start with wss://",
            Self::Proxied => "HTTP/3 cannot use a proxy; connect without one",
            Self::WebSocketsMissing => "server does not allow WebSockets over HTTP/3",
        })
    }
}

#[cfg(feature = "http3")]
impl std::error::Error for Http3Error {}
