//! Errors of connecting to a server.

#[cfg(unix)]
use std::path::PathBuf;
use std::{fmt, io, net::SocketAddr, time::Duration};

#[cfg(feature = "rustls")]
use super::transient::tls_error;
use super::{ProxyError, RedirectError, transient::is_transient_io};

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
        /// All attempts, in the order in which they began.
        attempts: Vec<Attempt>,
    },
    /// The server cannot be reached over HTTP/3.
    #[cfg(feature = "http3")]
    #[error("{0}")]
    Http3(Http3Error),
    /// ALPN selected a protocol over which this client cannot open a WebSocket. This happens if the
    /// client's TLS configuration offers such a protocol.
    #[error("cannot open a WebSocket over the selected protocol; check the ALPN protocols")]
    ProtocolUnsupported,
    /// The proxy failed or refused the connection.
    #[error("proxy connection failed: {0}")]
    Proxy(ProxyError),
    /// A redirect was not followed.
    #[error("redirect not followed: {0}")]
    Redirect(RedirectError),
    /// The host name could not be resolved.
    #[error("cannot resolve {host}: {error}")]
    ResolveFailed {
        /// The host name, of the server or of a proxy.
        host: String,
        /// Why it could not be resolved.
        error: io::Error,
    },
    /// The client uses another [runtime](crate::runtime) than tokio, and only tokio can do what was
    /// asked for: opening sockets, and HTTP/2.
    #[error(
        "only tokio can open sockets and HTTP/2; use `connect_over` with a stream of your runtime"
    )]
    RuntimeUnsupported,
    /// A phase exceeded its time limit.
    #[error(fmt = fmt_timed_out)]
    TimedOut {
        /// The phase that took too long.
        phase: Phase,
        /// The time since the phase began or, if the limit is the total for all phases, since the
        /// first phase began.
        elapsed: Duration,
        /// The time limit.
        limit: Duration,
        /// The attempts to connect, in the order in which they began. Empty for other phases.
        attempts: Vec<Attempt>,
    },
    /// The TLS handshake failed, or the certificate is not trusted.
    #[error(fmt = fmt_tls)]
    Tls(io::Error),
    /// The URL starts with `wss://`, but this build has no TLS.
    #[cfg(not(feature = "rustls"))]
    #[error("wss:// requires the feature `rustls`")]
    TlsMissing,
    /// The URL starts with `ws://`, but the server answered in TLS.
    #[error("server requires TLS on this port; use wss:// instead of ws://")]
    TlsRequired,
    /// The URL starts with `wss://`, but the server did not answer in TLS.
    #[error("server does not use TLS on this port; use ws:// instead of wss://, or another port")]
    TlsUnsupported,
    /// The Unix socket does not accept connections.
    #[cfg(unix)]
    #[error("cannot connect to the Unix socket {}: {error}", .path.display())]
    UnixConnectFailed {
        /// The path of the socket.
        path: PathBuf,
        /// Why the connection failed.
        error: io::Error,
    },
}

/// An attempt to connect to one address of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct Attempt {
    /// The address.
    pub address: SocketAddr,
    /// Why the attempt failed; `None` if there was no answer before time was up.
    pub error: Option<io::Error>,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.address),
            None => write!(f, "{}: no answer", self.address),
        }
    }
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
    /// Adds the attempts to connect to the error for a phase that timed out.
    pub(super) fn with_attempts(mut self, tried: Vec<Attempt>) -> Self {
        if let Self::TimedOut { attempts, .. } = &mut self {
            *attempts = tried;
        }
        self
    }

    /// Returns whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::AddressesDenied { .. }
            | Self::ProtocolUnsupported
            | Self::Redirect(_)
            | Self::RuntimeUnsupported
            | Self::TlsRequired
            | Self::TlsUnsupported => false,
            #[cfg(feature = "http3")]
            Self::Http3(_) => false,
            #[cfg(not(feature = "rustls"))]
            Self::TlsMissing => false,
            Self::Proxy(error) => error.is_transient(),
            Self::Tls(error) => is_transient_io(error),
            #[cfg(unix)]
            Self::UnixConnectFailed { .. } => true,
            Self::ConnectFailed { .. } | Self::ResolveFailed { .. } | Self::TimedOut { .. } => true,
        }
    }
}

/// Returns the error of a TLS handshake.
#[cfg(feature = "rustls")]
pub(super) fn of_tls(error: io::Error) -> DialError {
    use rustls::{Error, InvalidMessage};

    match tls_error(&error) {
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            DialError::TlsUnsupported
        }
        _ => DialError::Tls(error),
    }
}

/// Writes why a TLS handshake failed, and the likely remedy.
fn fmt_tls(error: &io::Error, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "TLS handshake failed: {error}")?;
    #[cfg(feature = "rustls")]
    if let Some(rustls::Error::InvalidCertificate(error)) = tls_error(error) {
        use rustls::CertificateError;

        return f.write_str(match error {
            CertificateError::BadSignature | CertificateError::UnknownIssuer => {
                "; if this is your own certificate authority, trust it with Client::with_tls"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "; the server's certificate has to be renewed, or the clock is wrong"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "; check the clock"
            }
            _ => "",
        });
    }
    Ok(())
}

/// Writes that none of the addresses accepted a connection, with all attempts.
fn fmt_connect_failed(attempts: &[Attempt], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match attempts {
        [attempt] => write!(f, "cannot connect to {attempt}"),
        _ => write!(f, "cannot connect to any of {} addresses", attempts.len())
            .and_then(|()| fmt_attempts(attempts, f)),
    }
}

/// Writes which phase timed out, with the attempts to connect.
fn fmt_timed_out(
    phase: &Phase,
    elapsed: &Duration,
    limit: &Duration,
    attempts: &[Attempt],
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    write!(
        f,
        "{phase} timed out after {elapsed:.3?}; the limit is {limit:?}"
    )?;
    fmt_attempts(attempts, f)
}

fn fmt_attempts(attempts: &[Attempt], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (index, attempt) in attempts.iter().enumerate() {
        let separator = if index == 0 { " (" } else { ", " };
        write!(f, "{separator}{attempt}")?;
    }
    match attempts {
        [] => Ok(()),
        _ => f.write_str(")"),
    }
}
