//! Why a client could not open a WebSocket.

use std::io;

use linerate_proto::handshake::HandshakeError;

/// Why a client could not open a WebSocket on a stream.
#[derive(Debug, thiserror::Error)]
#[expect(
    clippy::exhaustive_enums,
    reason = "either the handshake fails, or what carries it"
)]
pub enum OpenError {
    /// The server refused the opening handshake, or it is malformed.
    #[error("opening handshake failed: {0}")]
    Handshake(HandshakeError),
    /// The connection is lost, or the server violated the protocol of the connection.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<HandshakeError> for OpenError {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}
