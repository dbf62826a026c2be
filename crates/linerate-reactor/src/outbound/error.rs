//! The reasons why a connection could not be opened.

use std::{io, time::Duration};

use linerate_proto::handshake::HandshakeError;

/// The reason why an outbound connection could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server's response does not open a WebSocket.
    /// [`StatusUnexpected`](HandshakeError::StatusUnexpected) contains the status if it is not 101.
    #[error("WebSocket handshake failed")]
    Handshake(#[source] HandshakeError),
    /// The host name has no address, or the lookup failed.
    #[error("cannot look up the host name")]
    Lookup(#[source] io::Error),
    /// None of the addresses accepts the connection (this is the error of the last one), or the
    /// connection was lost.
    #[error("cannot connect to the server")]
    Network(#[source] io::Error),
    /// The server was built without a handler for connections that other threads open.
    #[error("no handler for outbound connections: set one with `Server::with_outbound`")]
    NoHandler,
    /// The reactor is shutting down.
    #[error("reactor is shutting down")]
    ShutDown,
    /// The TLS handshake failed, or the server's certificate is not valid for the host.
    #[error("TLS handshake failed")]
    Tls(#[source] io::Error),
    /// The attempt took longer than allowed.
    #[error("cannot connect within {time_max:?}")]
    TimedOut {
        /// The limit.
        time_max: Duration,
    },
    /// The connection limit is reached.
    #[error("connection limit of {connections_max} reached")]
    TooMany {
        /// The limit, [`Options::connections_max`](crate::Options).
        connections_max: usize,
    },
}
