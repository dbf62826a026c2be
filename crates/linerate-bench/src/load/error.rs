//! The errors that end a load early: failures of the server, and failures of the load itself.

use std::io;
use std::time::Duration;

use linerate_proto::handshake::HandshakeError;
use linerate_proto::{Opcode, ProtocolError};

/// The reason why a load has no figures.
///
/// Messages are numbered from 0 on their connection, and bytes from 0 in the payload of their
/// message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The server closed the TCP connection abruptly, without a closing handshake.
    #[error("the server broke the connection: {0}")]
    Broken(#[source] io::Error),
    /// The server began the closing handshake (RFC 6455 §7.1.2) before the load ended.
    #[error("the server closed the connection before the load ended, with {}", code_in_words(.code))]
    Closed {
        /// Code of the server's Close frame.
        code: Option<u16>,
    },
    /// The server ended the connection before it had answered the Close frame.
    #[error("the server did not answer the Close frame")]
    CloseUnanswered,
    /// The server did not agree to compress.
    #[error("the server declined to compress")]
    DeflateDeclined,
    /// The server agreed to compress, but with other parameters than those of the cell (RFC 7692
    /// §7.1).
    #[error("the server agreed to compress with parameters that were not offered")]
    DeflateParameters,
    /// An answer has other bytes than the message that was sent.
    #[error(
        "the server answered message {message} with other bytes: byte {byte} is {found:#04x}, \
        expected {expected:#04x}"
    )]
    Differs {
        /// Number of the message.
        message: u64,
        /// Index of the first byte that differs.
        byte: u64,
        /// The byte that should have been received.
        expected: u8,
        /// The byte that was received.
        found: u8,
    },
    /// The server ended the connection before the load ended, without a Close frame.
    #[error("the server ended the connection without a Close frame")]
    Ended,
    /// The server's process can no longer be inspected.
    #[error("server process exited: {0}")]
    Gone(#[source] io::Error),
    /// The opening handshake failed.
    #[error("opening handshake failed: {0}")]
    Handshake(#[source] HandshakeError),
    /// A compressed message is not in the format of RFC 7692.
    #[error("cannot decompress the answer to message {message}")]
    Inflate {
        /// Number of the message.
        message: u64,
    },
    /// An answer is longer than the message that was sent.
    #[error("the server answered message {message} with at least {bytes} B, expected {expected} B")]
    Long {
        /// Number of the message.
        message: u64,
        /// Least number of bytes that the answer has.
        bytes: u64,
        /// Number of bytes that it should have.
        expected: u64,
    },
    /// The server masked a frame, which RFC 6455 §5.1 forbids.
    #[error("the server masked a frame of message {message}")]
    Masked {
        /// Number of the message.
        message: u64,
    },
    /// A text message was answered by a binary one, or the other way round.
    #[error("the server answered message {message} as {found}, expected {expected}")]
    Opcode {
        /// Number of the message.
        message: u64,
        /// The opcode that the answer should have.
        expected: Opcode,
        /// The opcode that the answer has.
        found: Opcode,
    },
    /// A frame violates the protocol.
    #[error("the server broke the protocol in message {message}: {source}")]
    Protocol {
        /// Number of the message.
        message: u64,
        /// The rule that the frame violates.
        source: ProtocolError,
    },
    /// The server does not listen on its address.
    #[error("the server refused the connection: {0}")]
    Refused(#[source] io::Error),
    /// A reserved bit is set in a frame, although no extension gives it a meaning (RFC 6455 §5.2).
    #[error("the server set reserved bits in a frame of message {message}: {rsv:#05b}")]
    Reserved {
        /// Number of the message.
        message: u64,
        /// RSV1, RSV2 and RSV3 as the bits 4, 2 and 1.
        rsv: u8,
    },
    /// An answer is shorter than the message that was sent.
    #[error("the server answered message {message} with {bytes} B, expected {expected} B")]
    Short {
        /// Number of the message.
        message: u64,
        /// Number of bytes that the answer has.
        bytes: u64,
        /// Number of bytes that it should have.
        expected: u64,
    },
    /// The server sent nothing for this long while answers were due.
    #[error("the server sent nothing for {} s while answers were due", .0.as_secs_f64())]
    Silent(Duration),
    /// The load's own machine refused something that the load needs. Not the server's failure.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// The TLS session failed.
    #[error("TLS session failed: {0}")]
    Tls(#[source] rustls::Error),
    /// The messages of a cell need more memory than a load may use. Not the server's failure.
    #[error("the cell's messages need {bytes} B of memory, more than the limit of {bytes_max} B")]
    TooLarge {
        /// Number of bytes that they need.
        bytes: u64,
        /// Largest number of bytes that they may need.
        bytes_max: u64,
    },
    /// The server sent a message that was not due.
    #[error("the server sent data that was not due, after message {message}")]
    Unasked {
        /// Number of messages that had been answered before.
        message: u64,
    },
    /// The server agreed to compress, but sent a message uncompressed.
    #[error("the server did not compress message {message}")]
    Uncompressed {
        /// Number of the message.
        message: u64,
    },
    /// The process may not open as many connections as the cell needs. Not the server's failure.
    #[error("the cell needs {files} open files, more than the hard limit of {files_max}")]
    TooManyFiles {
        /// Number of descriptors that the load needs: its connections and some more.
        files: u64,
        /// The hard limit of the process.
        files_max: u64,
    },
    /// The cell compares memory, but the server's process cannot be inspected. Not the server's
    /// failure.
    #[error("cannot measure memory: the server's process is not known")]
    Unseen,
    /// The cell combines these settings, which no load supports. Not the server's failure.
    #[error("unsupported load: {0}")]
    Unsupported(&'static str),
}

impl LoadError {
    /// Returns whether the load itself failed, so that the error says nothing about the server.
    pub fn is_ours(&self) -> bool {
        matches!(
            self,
            Self::System { .. }
                | Self::TooLarge { .. }
                | Self::TooManyFiles { .. }
                | Self::Unseen
                | Self::Unsupported { .. }
        )
    }

    /// Classifies an error of a socket that is connected to the server, or was about to be.
    pub(crate) fn of_socket(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        // A TLS error is the cause of an `io::Error`.
        if let Some(tls) = error
            .get_ref()
            .and_then(|cause| cause.downcast_ref::<rustls::Error>())
        {
            return Self::Tls(tls.clone());
        }
        match error.kind() {
            Kind::ConnectionRefused => Self::Refused(error),
            Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::BrokenPipe
            | Kind::NotConnected
            | Kind::UnexpectedEof => Self::Broken(error),
            _ => Self::System {
                what: "socket error",
                source: error,
            },
        }
    }
}

/// Returns a function that turns a system error into [`LoadError::System`].
pub(crate) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> LoadError {
    move |source| LoadError::System {
        what,
        source: source.into(),
    }
}

fn code_in_words(code: &Option<u16>) -> String {
    match code {
        Some(code) => format!("code {code}"),
        None => "no code".to_owned(),
    }
}
