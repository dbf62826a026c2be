//! Why a server could not be reached.

use std::{fmt, io, time::Duration};

use super::{Phase, ProxyError, RedirectError};

/// Why a server could not be reached.
#[derive(Debug)]
#[non_exhaustive]
pub enum DialError {
    /// The application's check allows none of the addresses.
    AddressesDenied {
        /// How many there were.
        addresses: usize,
    },
    /// No address could be connected to.
    ConnectFailed {
        /// How many were tried.
        attempts: usize,
        /// Why the last of them failed.
        source: io::Error,
    },
    /// There is no way to the server over HTTP/3.
    #[cfg(feature = "http3")]
    Http3(super::Http3Error),
    /// ALPN has agreed on a protocol that this client can't open a WebSocket over, because its TLS
    /// configuration offers it.
    ProtocolUnsupported,
    /// There is no way through the proxy.
    Proxy(ProxyError),
    /// A redirect was not followed.
    Redirect(RedirectError),
    /// The name could not be resolved.
    ResolveFailed(io::Error),
    /// A phase was not over in time.
    TimedOut {
        /// The phase.
        phase: Phase,
        /// How long it took: since it began, or, if the limit is that of all phases, since the
        /// first of them began.
        elapsed: Duration,
        /// How long it might have taken.
        limit: Duration,
    },
    /// TLS could not be agreed on, or the certificate is not one to be trusted.
    Tls(io::Error),
}

impl DialError {
    /// Returns whether trying again may help.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::AddressesDenied { .. } | Self::ProtocolUnsupported | Self::Redirect(_) => false,
            #[cfg(feature = "http3")]
            Self::Http3(_) => false,
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
                write!(f, "none of {addresses} addresses of the server is allowed")
            }
            Self::ConnectFailed { attempts, source } => {
                write!(f, "can't connect after {attempts} attempts: {source}")
            }
            #[cfg(feature = "http3")]
            Self::Http3(error) => error.fmt(f),
            Self::ProtocolUnsupported => f.write_str(
                "the server chose a protocol by ALPN over which no WebSocket can be opened",
            ),
            Self::Proxy(error) => write!(f, "no way through the proxy: {error}"),
            Self::Redirect(error) => write!(f, "redirect not followed: {error}"),
            Self::ResolveFailed(error) => write!(f, "can't resolve the name: {error}"),
            Self::TimedOut {
                phase,
                elapsed,
                limit,
            } => write!(
                f,
                "gave up {phase} after {elapsed:.3?}; the limit is {limit:?}"
            ),
            Self::Tls(error) => write!(f, "TLS failed: {error}"),
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
            Self::AddressesDenied { .. } | Self::ProtocolUnsupported | Self::TimedOut { .. } => {
                None
            }
        }
    }
}
