//! The errors that applications see.

use std::{io, time::Duration};

use linerate_proto::{
    ProtocolError, SendError,
    handshake::{BuildError, HandshakeError},
    url::UrlError,
};

use crate::{backoff::AttemptsExhausted, client::Response, dial::DialError, retry::Retry};

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a connection could not be opened or used. A clean close is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The stream ended without a closing handshake (close code 1006).
    #[error("connection ended without a closing handshake")]
    Abnormal,
    /// The maximum number of connection attempts was reached.
    #[error("{0}")]
    AttemptsExhausted(#[from] AttemptsExhausted),
    /// The request of the opening handshake cannot be built from the given URL, headers and
    /// subprotocols.
    #[error("{0}")]
    Build(#[from] BuildError),
    /// The closing handshake took longer than allowed.
    #[error("closing handshake took longer than {budget:?}")]
    CloseTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The server could not be reached.
    #[error("{0}")]
    Dial(#[from] DialError),
    /// The opening handshake is malformed. A client returns
    /// [`StatusUnexpected`](Self::StatusUnexpected) if the server refused it.
    #[error("opening handshake failed: {0}")]
    Handshake(#[from] HandshakeError),
    /// A client took longer to complete the opening handshake than the server allows.
    #[error("opening handshake took longer than {budget:?}")]
    HandshakeTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The socket failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The peer violated the protocol, and the connection was failed (RFC 6455 §7.1.7).
    #[error("peer violated the protocol: {0}")]
    Protocol(#[from] ProtocolError),
    /// The application refused the request to open a WebSocket.
    #[error("request refused with status {status}")]
    Refused {
        /// The HTTP status of the refusal.
        status: u16,
    },
    /// A message cannot be sent. The connection is unaffected, or had already ended.
    #[error("{0}")]
    Send(#[from] SendError),
    /// The server refused to open a WebSocket, or redirects elsewhere. The error has its response.
    #[error("{0}")]
    StatusUnexpected(Box<Response>),
    /// A string is not a WebSocket URL.
    #[error("{0}")]
    Url(#[from] UrlError),
}

/// Why a message could not be sent without waiting.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrySendError {
    /// The send queue is full.
    #[error("send queue is full: {bytes} bytes queued, limit {bytes_max}")]
    Full {
        /// The number of bytes in the queue.
        bytes: usize,
        /// The number of bytes at which nothing more is accepted.
        bytes_max: usize,
    },
    /// The message cannot be sent at all.
    #[error("{0}")]
    Send(#[from] SendError),
}

impl Error {
    /// Returns whether connecting again with the same request may succeed, by the
    /// [table](crate::Backoff#when-to-connect-again) of [`Backoff`](crate::Backoff).
    pub fn is_transient(&self) -> bool {
        !Retry::after_error(self).is_never()
    }

    /// Returns how long to wait before the next attempt, if the server refused the WebSocket and
    /// asks for that with a `Retry-After` header.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::StatusUnexpected(response) => response.retry_after(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dial::{Phase, ProxyError, RedirectError};

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
    }
}
