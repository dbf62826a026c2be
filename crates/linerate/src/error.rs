//! The errors that applications see.

use std::{fmt, io, time::Duration};

#[cfg(any(feature = "http2", feature = "http3"))]
use linerate_http::OpenError;
use linerate_proto::{
    ProtocolError, SendError,
    handshake::{BuildError, HandshakeError},
    url::UrlError,
};

use crate::{backoff::AttemptsExhausted, dial::DialError};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a connection could not be opened or used. A clean close is not an error.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The stream ended without a closing handshake (close code 1006).
    Abnormal,
    /// The maximum number of connection attempts was reached.
    AttemptsExhausted(AttemptsExhausted),
    /// The request of the opening handshake cannot be built from the given URL, headers and
    /// subprotocols.
    Build(BuildError),
    /// The closing handshake took longer than allowed.
    CloseTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The server could not be reached.
    Dial(DialError),
    /// The opening handshake was refused or is malformed.
    Handshake(HandshakeError),
    /// A client took longer to complete the opening handshake than the server allows.
    HandshakeTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The socket failed.
    Io(io::Error),
    /// The peer violated the protocol, and the connection was failed (RFC 6455 §7.1.7).
    Protocol(ProtocolError),
    /// The application refused the request to open a WebSocket.
    Refused {
        /// The HTTP status of the refusal.
        status: u16,
    },
    /// A message cannot be sent. The connection is unaffected, or had already ended.
    Send(SendError),
    /// A string is not a WebSocket URL.
    Url(UrlError),
}

/// Why a message could not be sent without waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send queue is full.
    Full {
        /// The number of bytes in the queue.
        bytes: usize,
        /// The number of bytes at which nothing more is accepted.
        bytes_max: usize,
    },
    /// The message cannot be sent at all.
    Send(SendError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abnormal => f.write_str("connection ended without a closing handshake"),
            Self::AttemptsExhausted(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
            Self::CloseTimeout { budget } => {
                write!(f, "closing handshake took longer than {budget:?}")
            }
            Self::Dial(error) => error.fmt(f),
            Self::Handshake(error) => write!(f, "opening handshake failed: {error}"),
            Self::HandshakeTimeout { budget } => {
                write!(f, "opening handshake took longer than {budget:?}")
            }
            Self::Io(error) => error.fmt(f),
            Self::Protocol(error) => write!(f, "peer violated the protocol: {error}"),
            Self::Refused { status } => write!(f, "request refused with status {status}"),
            Self::Send(error) => error.fmt(f),
            Self::Url(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for TrySendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { bytes, bytes_max } => {
                write!(
                    f,
                    "send queue is full: {bytes} bytes queued, limit {bytes_max}"
                )
            }
            Self::Send(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TrySendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Full { .. } => None,
            Self::Send(error) => Some(error),
        }
    }
}

impl From<SendError> for TrySendError {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::AttemptsExhausted(error) => Some(error),
            Self::Build(error) => Some(error),
            Self::Dial(error) => Some(error),
            Self::Handshake(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::Protocol(error) => Some(error),
            Self::Send(error) => Some(error),
            Self::Url(error) => Some(error),
            Self::Abnormal
            | Self::CloseTimeout { .. }
            | Self::HandshakeTimeout { .. }
            | Self::Refused { .. } => None,
        }
    }
}

impl Error {
    /// Returns whether connecting again with the same request may succeed.
    ///
    /// An invalid URL or header stays invalid, so this returns `false` for those. It also returns
    /// `false` for redirects (3xx) and for requests that a server refuses with a 4xx status, except
    /// 408, 425 and 429.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::AttemptsExhausted(_) | Self::Build(_) | Self::Url(_) => false,
            Self::Dial(error) => error.is_transient(),
            Self::Handshake(HandshakeError::StatusUnexpected { status }) => {
                !(300..500).contains(status) || matches!(status, 408 | 425 | 429)
            }
            Self::Abnormal
            | Self::CloseTimeout { .. }
            | Self::Handshake(_)
            | Self::HandshakeTimeout { .. }
            | Self::Io(_)
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Send(_) => true,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<DialError> for Error {
    fn from(error: DialError) -> Self {
        Self::Dial(error)
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Self::Send(error)
    }
}

impl From<HandshakeError> for Error {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}

#[cfg(any(feature = "http2", feature = "http3"))]
impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Handshake(error) => Self::Handshake(error),
            OpenError::Io(error) => Self::Io(error),
        }
    }
}

impl From<AttemptsExhausted> for Error {
    fn from(error: AttemptsExhausted) -> Self {
        Self::AttemptsExhausted(error)
    }
}

impl From<BuildError> for Error {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<UrlError> for Error {
    fn from(error: UrlError) -> Self {
        Self::Url(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{Phase, ProxyError, RedirectError};

    fn refused(status: u16) -> Error {
        HandshakeError::StatusUnexpected { status }.into()
    }

    #[test]
    fn what_the_next_attempt_may_not_meet_again_is_transient() {
        let second = Duration::from_secs(1);
        let timed_out = DialError::TimedOut {
            phase: Phase::Tls,
            elapsed: second,
            limit: second,
        };
        for error in [
            Error::Abnormal,
            Error::Io(io::ErrorKind::ConnectionReset.into()),
            timed_out.into(),
            DialError::ResolveFailed(io::ErrorKind::NotFound.into()).into(),
            DialError::Proxy(ProxyError::SocksRefused { reply: 5 }).into(),
        ] {
            assert!(error.is_transient(), "{error}");
        }
        for status in [200, 408, 425, 429, 500, 503] {
            assert!(refused(status).is_transient(), "{status}");
        }
    }

    #[test]
    fn what_the_next_attempt_meets_again_is_not_transient() {
        for error in [
            Error::Url(UrlError::Scheme),
            Error::Build(BuildError::HeaderReserved),
            AttemptsExhausted { attempts_max: 3 }.into(),
            DialError::AddressesDenied { addresses: 1 }.into(),
            DialError::Redirect(RedirectError::Insecure).into(),
            DialError::Proxy(ProxyError::CredentialsRefused).into(),
        ] {
            assert!(!error.is_transient(), "{error}");
        }
        for status in [300, 302, 400, 401, 403, 404, 426] {
            assert!(!refused(status).is_transient(), "{status}");
        }
    }
}
