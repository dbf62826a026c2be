//! The errors that an application can see.

use std::time::Duration;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a connection could not be opened or used. A clean close is not among these.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection ended without a closing handshake (close code 1006).
    #[error("connection ended without a closing handshake")]
    Abnormal,
    /// The browser does not allow a page to close with this code.
    #[error("a page cannot close with {code}: use 1000 or 3000 to 4999")]
    CloseCode {
        /// The code.
        code: u16,
    },
    /// The closing handshake took longer than
    /// [`Options::close_timeout`](crate::Options::close_timeout).
    #[error("closing handshake took longer than {budget:?}")]
    CloseTimeout {
        /// The time limit.
        budget: Duration,
    },
    /// Nothing can be sent on a connection that is closing or closed.
    #[error("connection is closing or closed")]
    Closed,
    /// The connection could not be opened. Browsers do not reveal why.
    #[error("connection could not be opened")]
    ConnectFailed,
    /// The connection was not open in time.
    #[error("connection was not open within {budget:?}")]
    ConnectTimeout {
        /// The time limit.
        budget: Duration,
    },
    /// The close reason is too long.
    #[error("close reason has {bytes} bytes; the limit is {bytes_max}")]
    ReasonTooLong {
        /// The length of the reason in bytes.
        bytes: usize,
        /// The limit (RFC 6455 §5.5).
        bytes_max: usize,
    },
    /// Too many bytes are waiting to be received; the connection was closed.
    #[error("{bytes} bytes are waiting to be received; the limit is {bytes_max}")]
    RecvQueueFull {
        /// How many bytes would be waiting.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The browser rejected the URL or a subprotocol.
    #[error("rejected by the browser: {message}")]
    Refused {
        /// The browser's message.
        message: String,
    },
}
