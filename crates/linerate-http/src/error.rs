//! Why a client could not open a WebSocket.

use std::{fmt, io};

use linerate_proto::handshake::HandshakeError;

/// Why a client could not open a WebSocket on a stream. The list is complete: either the handshake
/// fails or what carries it.
#[derive(Debug)]
pub enum OpenError {
    /// The server refused the opening handshake, or it is malformed.
    Handshake(HandshakeError),
    /// The connection is lost, or the server violated the protocol of the connection.
    Io(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(error) => write!(f, "opening handshake failed: {error}"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Handshake(_) => None,
            Self::Io(error) => error.source(),
        }
    }
}

impl From<HandshakeError> for OpenError {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
