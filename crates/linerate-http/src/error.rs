//! Why a client could not open a WebSocket.

use std::io;

use linerate_proto::handshake::HandshakeError;

/// Why a client could not open a WebSocket on a stream `S`.
#[derive(Debug, thiserror::Error)]
#[expect(
    clippy::exhaustive_enums,
    reason = "either the handshake fails, or what carries it"
)]
pub enum OpenError<S> {
    /// The opening handshake is malformed.
    #[error("opening handshake failed: {0}")]
    Handshake(HandshakeError),
    /// The connection is lost, or the server violated the protocol of the connection.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server refused the WebSocket.
    #[error("server refused the WebSocket with status {status}")]
    Refused {
        /// The status of its response; the handshake has the headers.
        status: u16,
        /// The stream, which continues with the body of the response.
        stream: S,
    },
}

impl<S> From<HandshakeError> for OpenError<S> {
    fn from(error: HandshakeError) -> Self {
        Self::Handshake(error)
    }
}
