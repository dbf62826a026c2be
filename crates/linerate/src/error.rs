//! The errors that applications see.

use std::{io, time::Duration};

use linerate_proto::{
    ProtocolError, SendError,
    handshake::{BuildError, HandshakeError},
    url::UrlError,
};

use crate::{
    attempts::AttemptsExhausted,
    dial::{DialError, is_transient_io},
    response::Response,
    retry::Retry,
};

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
    #[error(transparent)]
    AttemptsExhausted(#[from] AttemptsExhausted),
    /// The request of the opening handshake cannot be built from the given URL, headers and
    /// subprotocols.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The closing handshake took longer than allowed.
    #[error("closing handshake took longer than {budget:?}")]
    CloseTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The server could not be reached.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// The opening handshake is malformed. A client returns
    /// [`StatusUnexpected`](Self::StatusUnexpected) if the server refused it.
    #[error("opening handshake failed: {0}")]
    Handshake(HandshakeError),
    /// A header of the request cannot be sent.
    #[error("cannot send the header {name:?}: {error}")]
    Header {
        /// The name of the header, as passed to [`Client`](crate::Client).
        name: String,
        /// What is wrong with the header.
        error: BuildError,
    },
    /// A client took longer to complete the opening handshake than the server allows.
    #[error("opening handshake took longer than {budget:?}")]
    HandshakeTimeout {
        /// The time allowed.
        budget: Duration,
    },
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The connection cannot join a room.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The peer has closed the connection, so that nothing more can be sent.
    #[error("peer closed the connection with code {code}, reason {reason:?}")]
    PeerClosed {
        /// The code of the peer's Close frame; 1005 if it had none.
        code: u16,
        /// The reason that the peer gave; often empty.
        reason: String,
    },
    /// The peer violated the protocol, and the connection was failed (RFC 6455 §7.1.7).
    #[error("peer violated the protocol: {0}")]
    Protocol(ProtocolError),
    /// The application refused the request to open a WebSocket.
    #[error("request refused with status {status}")]
    Refused {
        /// The HTTP status of the refusal.
        status: u16,
    },
    /// A message cannot be sent. The connection is unaffected, or had already ended.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The server refused to open a WebSocket, or redirects elsewhere. The error has its response.
    #[error("{0}")]
    StatusUnexpected(Box<Response>),
    /// A string is not a WebSocket URL.
    #[error(transparent)]
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
    #[error(transparent)]
    Send(#[from] SendError),
}

/// Why a connection cannot join a room.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The connection is closing or closed.
    #[error("connection is closing or closed")]
    Closed,
    /// The room is full.
    #[error(
        "room is full: it has {members_max} members, the maximum; see RoomOptions::members_max"
    )]
    MembersMax {
        /// The number of members that the room may have.
        members_max: usize,
    },
    /// The name of the room is too long.
    #[error("name of the room has {bytes} bytes, limit {bytes_max}")]
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The largest length in bytes.
        bytes_max: usize,
    },
    /// The room has vanished from its [`Rooms`](crate::room::Rooms) because it was empty.
    #[error("room has vanished because it was empty; join it by its name")]
    RoomVanished,
    /// There are as many rooms as allowed.
    #[error(
        "cannot create another room: there are {rooms_max}, the maximum; see Rooms::with_rooms_max"
    )]
    RoomsMax {
        /// The number of rooms that there may be.
        rooms_max: usize,
    },
}

// The messages of these errors contain those of their causes, which are therefore not their
// sources: a program that prints all sources would print them twice.
impl From<HandshakeError> for Error {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

impl Error {
    /// Returns whether connecting again with the same request may succeed, by the
    /// [table](crate::Backoff#when-to-connect-again) of [`Backoff`](crate::Backoff).
    pub fn is_transient(&self) -> bool {
        !self.retry().is_never()
    }

    /// Returns how long to wait before the next attempt, if the server refused the WebSocket and
    /// asks for that with a `Retry-After` header.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::StatusUnexpected(response) => response.retry_after(),
            _ => None,
        }
    }

    /// Returns whether, and how soon, to connect again.
    pub(crate) fn retry(&self) -> Retry {
        let is_transient = match self {
            Self::PeerClosed { code, .. } => return Retry::after_code(*code),
            Self::Protocol(error) => return Retry::after_code(error.close_code().as_u16()),
            Self::StatusUnexpected(response) => return Retry::after_status(response.status),
            Self::AttemptsExhausted(_)
            | Self::Build(_)
            | Self::Header { .. }
            | Self::Join(_)
            | Self::Refused { .. }
            | Self::Url(_) => false,
            Self::Dial(error) => error.is_transient(),
            Self::Io(error) => is_transient_io(error),
            Self::Send(error) => matches!(error, SendError::Closed),
            Self::Abnormal
            | Self::CloseTimeout { .. }
            | Self::Handshake(_)
            | Self::HandshakeTimeout { .. } => true,
        };
        match is_transient {
            true => Retry::Soon,
            false => Retry::Never,
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
            attempts: Vec::new(),
        };
        for error in [
            Error::Abnormal,
            Error::Io(io::ErrorKind::ConnectionReset.into()),
            timed_out.into(),
            DialError::ResolveFailed {
                host: "example.com".into(),
                error: io::ErrorKind::NotFound.into(),
            }
            .into(),
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
            DialError::TlsRequired.into(),
            DialError::TlsUnsupported.into(),
            DialError::Proxy(ProxyError::CredentialsRefused).into(),
        ] {
            assert!(!error.is_transient(), "{error}");
        }
    }

    /// Errors of TLS come as errors of the stream, before or after the handshake.
    #[cfg(feature = "rustls")]
    #[test]
    fn a_certificate_that_is_not_accepted_is_not_transient() {
        use rustls::{AlertDescription, CertificateError, Error as Tls};

        for (error, is_transient) in [
            (CertificateError::UnknownIssuer.into(), false),
            (CertificateError::Expired.into(), false),
            (CertificateError::NotValidForName.into(), false),
            (Tls::AlertReceived(AlertDescription::UnknownCA), false),
            (
                Tls::AlertReceived(AlertDescription::CertificateRequired),
                false,
            ),
            (Tls::AlertReceived(AlertDescription::InternalError), true),
        ] {
            for wrap in [
                |error| Error::Dial(DialError::Tls(error)),
                |error| Error::Io(error),
                |error| Error::Dial(DialError::Proxy(ProxyError::Io(error))),
            ] {
                let error = io::Error::new(io::ErrorKind::InvalidData, Tls::clone(&error));
                let error = wrap(error);
                assert_eq!(error.is_transient(), is_transient, "{error}");
            }
        }
    }

    #[test]
    fn no_cause_is_printed_twice() {
        let io = || io::Error::other("the cause");
        let attempts = |errors: usize| {
            let address = ([127, 0, 0, 1], 80).into();
            let error = || Some(io());
            (0..errors)
                .map(|_| crate::dial::Attempt {
                    address,
                    error: error(),
                })
                .collect()
        };
        for error in [
            Error::Io(io()),
            DialError::Tls(io()).into(),
            DialError::Proxy(ProxyError::Io(io())).into(),
            DialError::ConnectFailed {
                attempts: attempts(1),
            }
            .into(),
            DialError::ResolveFailed {
                host: "example.com".into(),
                error: io(),
            }
            .into(),
            HandshakeError::AcceptMismatch.into(),
            UrlError::Scheme.into(),
            Error::Header {
                name: "Host".into(),
                error: BuildError::HeaderReserved,
            },
            AttemptsExhausted { attempts_max: 3 }.into(),
        ] {
            let message = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                assert!(!message.contains(&cause.to_string()), "{message}");
                source = cause.source();
            }
        }
        let error = DialError::ConnectFailed {
            attempts: attempts(2),
        };
        assert_eq!(
            error.to_string(),
            "cannot connect to any of 2 addresses (127.0.0.1:80: the cause, 127.0.0.1:80: the cause)"
        );
    }

    #[test]
    fn errors_of_an_open_connection_are_sorted_by_their_cause() {
        for (error, retry) in [
            (ProtocolError::UnmaskedFrame.into(), Retry::Never),
            (
                ProtocolError::InvalidUtf8 { offset: 0 }.into(),
                Retry::Never,
            ),
            (SendError::Closed.into(), Retry::Soon),
            (
                SendError::CloseReasonTooLong { bytes: 124 }.into(),
                Retry::Never,
            ),
            (Error::Abnormal, Retry::Soon),
            (Error::Refused { status: 503 }, Retry::Never),
        ] {
            assert_eq!(error.retry(), retry, "{error}");
        }
    }
}
