//! What can go wrong, seen from an application.

use std::{fmt, time::Duration};

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a connection could not be opened or used. A clean close is not among these.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended without a closing handshake (close code 1006).
    Abnormal,
    /// The browser does not let a page close with this code.
    CloseCode {
        /// The code.
        code: u16,
    },
    /// The closing handshake took longer than its budget.
    CloseTimeout {
        /// The budget.
        budget: Duration,
    },
    /// Nothing can be sent on a connection that is closing or closed.
    Closed,
    /// The connection could not be opened. The browser tells nobody why.
    ConnectFailed,
    /// The connection was not open in time.
    ConnectTimeout {
        /// The budget.
        budget: Duration,
    },
    /// The reason to close with is too long.
    ReasonTooLong {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have (RFC 6455 §5.5).
        bytes_max: usize,
    },
    /// More arrived than may wait to be received; the connection was closed.
    RecvQueueFull {
        /// How many bytes would have waited.
        bytes: usize,
        /// How many may.
        bytes_max: usize,
    },
    /// The browser accepts no such address, or no such subprotocol.
    Refused {
        /// What the browser says.
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
                    "a page can't close with {code}: it is neither 1000 nor 3000 to 4999"
                )
            }
            Self::CloseTimeout { budget } => {
                write!(f, "closing handshake took longer than {budget:?}")
            }
            Self::Closed => f.write_str("connection is closing or closed"),
            Self::ConnectFailed => f.write_str("connection could not be opened"),
            Self::ConnectTimeout { budget } => {
                write!(f, "connection was not open after {budget:?}")
            }
            Self::ReasonTooLong { bytes, bytes_max } => {
                write!(f, "the reason has {bytes} bytes; the limit is {bytes_max}")
            }
            Self::RecvQueueFull { bytes, bytes_max } => {
                write!(
                    f,
                    "{bytes} bytes wait to be received; the limit is {bytes_max}"
                )
            }
            Self::Refused { message } => write!(f, "the browser refuses: {message}"),
        }
    }
}

impl std::error::Error for Error {}
