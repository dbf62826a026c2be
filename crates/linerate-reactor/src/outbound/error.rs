//! Why a connection did not come about.

use std::{error::Error, fmt, io, time::Duration};

use linerate_proto::handshake::HandshakeError;

/// A connection that we asked for did not come about.
#[derive(Debug)]
#[non_exhaustive]
pub enum ConnectError {
    /// The answer does not open a WebSocket;
    /// [`StatusUnexpected`](HandshakeError::StatusUnexpected) has its status.
    Handshake(HandshakeError),
    /// The host's name has no address, or nobody can tell.
    Lookup(io::Error),
    /// None of the addresses takes a connection (this is the error of the last one), or the
    /// connection was lost.
    Network(io::Error),
    /// The server was built without a handler for connections that other threads ask for.
    NoHandler,
    /// The reactor shuts down.
    ShutDown,
    /// The server does not speak TLS as it must, or is not whom its certificate is to be of.
    Tls(io::Error),
    /// The attempt took longer than it may.
    TimedOut {
        /// The limit.
        time_max: Duration,
    },
    /// There are as many connections as there may be.
    TooMany {
        /// The limit, [`Options::connections_max`](crate::Options).
        connections_max: usize,
    },
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(_) => f.write_str("server does not open a WebSocket"),
            Self::Lookup(_) => f.write_str("name of the host can't be looked up"),
            Self::Network(_) => f.write_str("server can't be reached"),
            Self::NoHandler => f.write_str("there is no handler of outbound connections"),
            Self::ShutDown => f.write_str("reactor shuts down"),
            Self::Tls(_) => f.write_str("no encrypted connection comes about"),
            Self::TimedOut { time_max } => write!(f, "connecting took longer than {time_max:?}"),
            Self::TooMany { connections_max } => {
                write!(
                    f,
                    "there are {connections_max} connections, which is the limit"
                )
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
