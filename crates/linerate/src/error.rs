//! The errors that applications see.

use std::{io, time::Duration};

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
    /// The opening handshake was refused or is malformed.
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
    /// The connection cannot join a room.
    #[error("{0}")]
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
            | Self::Join(_)
            | Self::PeerClosed { .. }
            | Self::Protocol(_)
            | Self::Refused { .. }
            | Self::Send(_) => true,
        }
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
