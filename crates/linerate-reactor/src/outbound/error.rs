//! The reasons why a connection could not be opened.

use std::{error::Error, fmt, io, time::Duration};

use linerate_proto::handshake::HandshakeError;

/// The reason why an outbound connection could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The server's response does not open a WebSocket.
    /// [`StatusUnexpected`](HandshakeError::StatusUnexpected) contains the status if it is not 101.
    Handshake(HandshakeError),
    /// The host name has no address, or the lookup failed.
    Lookup(io::Error),
    /// None of the addresses accepts the connection (this is the error of the last one), or the
    /// connection was lost.
    Network(io::Error),
    /// The server was built without a handler for connections that other threads open.
    NoHandler,
    /// The reactor is shutting down.
    ShutDown,
    /// The TLS handshake failed, or the server's certificate is not valid for the host.
    Tls(io::Error),
    /// The attempt took longer than allowed.
    TimedOut {
        /// The limit.
        time_max: Duration,
    },
    /// The connection limit is reached.
    TooMany {
        /// The limit, [`Options::connections_max`](crate::Options).
        connections_max: usize,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(_) => f.write_str("WebSocket handshake failed"),
            Self::Lookup(_) => f.write_str("cannot look up the host name"),
            Self::Network(_) => f.write_str("cannot connect to the server"),
            Self::NoHandler => f.write_str(
                "no handler for outbound connections: set one with `Server::with_outbound`",
            ),
            Self::ShutDown => f.write_str("reactor is shutting down"),
            Self::Tls(_) => f.write_str("TLS handshake failed"),
            Self::TimedOut { time_max } => write!(f, "cannot connect within {time_max:?}"),
            Self::TooMany { connections_max } => {
                write!(f, "connection limit of {connections_max} reached")
            }
        }
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Handshake(error) => Some(error),
            Self::Lookup(error) | Self::Network(error) | Self::Tls(error) => Some(error),
            Self::NoHandler | Self::ShutDown | Self::TimedOut { .. } | Self::TooMany { .. } => None,
        }
    }
}
