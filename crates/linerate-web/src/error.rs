//! The errors that an application can see.

use std::{fmt, time::Duration};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a connection could not be opened or used. A clean close is not among these.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended without a closing handshake (close code 1006).
    Abnormal,
    /// The browser does not allow a page to close with this code.
    CloseCode {
        /// The code.
        code: u16,
    },
    /// The closing handshake took longer than
    /// [`Options::close_timeout`](crate::Options::close_timeout).
    CloseTimeout {
        /// The time limit.
        budget: Duration,
    },
    /// Nothing can be sent on a connection that is closing or closed.
    Closed,
    /// The connection could not be opened. Browsers do not reveal why.
    ConnectFailed,
    /// The connection was not open in time.
    ConnectTimeout {
        /// The time limit.
        budget: Duration,
    },
    /// The close reason is too long.
    ReasonTooLong {
        /// The length of the reason in bytes.
        bytes: usize,
        /// The limit (RFC 6455 §5.5).
        bytes_max: usize,
    },
    /// Too many bytes are waiting to be received; the connection was closed.
    RecvQueueFull {
        /// How many bytes would be waiting.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The browser rejected the URL or a subprotocol.
    Refused {
        /// The browser's message.
        message: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abnormal => f.write_str("connection ended without a closing handshake"),
            Self::CloseCode { code } => {
                write!(
                    f,
                    "a page cannot close with {code}: use 1000 or 3000 to 4999"
                )
            }
            Self::CloseTimeout { budget } => {
                write!(f, "closing handshake took longer than {budget:?}")
            }
            Self::Closed => f.write_str("connection is closing or closed"),
            Self::ConnectFailed => f.write_str("connection could not be opened"),
            Self::ConnectTimeout { budget } => {
                write!(f, "connection was not open within {budget:?}")
            }
            Self::ReasonTooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "close reason has {bytes} bytes; the limit is {bytes_max}"
                )
            }
            Self::RecvQueueFull { bytes, bytes_max } => {
                write!(
                    f,
                    "{bytes} bytes are waiting to be received; the limit is {bytes_max}"
                )
            }
            Self::Refused { message } => write!(f, "rejected by the browser: {message}"),
        }
    }
}

impl std::error::Error for Error {}
