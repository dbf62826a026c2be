//! The reasons why a thread cannot reach a connection.

/// The reason why [`Remote::send`](crate::Remote::send) or [`Remote::close`](crate::Remote::close)
/// did nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The connection has ended, or a thread has closed it.
    #[error("connection is closed")]
    Closed,
    /// The backlog of the connection has reached its limit. Messages are accepted again from its
    /// [`Handler::drain`](crate::Handler::drain) on.
    #[error("backlog of the connection exceeds {bytes_max} bytes: retry after `Handler::drain`")]
    Congested {
        /// The limit, [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max).
        bytes_max: usize,
    },
    /// As many bytes as allowed wait for the worker of the connection.
    #[error(
        "{bytes} more bytes for the worker exceed the limit of {bytes_max}: retry later, or raise \
         `Options::mailbox_bytes_max`"
    )]
    Full {
        /// The length of the message, including what it takes to queue it.
        bytes: usize,
        /// The limit, [`Options::mailbox_bytes_max`](crate::Options::mailbox_bytes_max).
        bytes_max: usize,
    },
    /// The close reason is too long for a Close frame (RFC 6455 §5.5).
    #[error("close reason of {bytes} bytes exceeds the limit of {bytes_max}")]
    ReasonTooLong {
        /// The length of the reason.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}
