//! What ends a load early: the server's failures, and ours.

use std::io;
use std::time::Duration;

use linerate_proto::handshake::HandshakeError;
use linerate_proto::{Opcode, ProtocolError};

/// Says why a load gave no figures.
///
/// Messages are counted from 0 on their connection, bytes from 0 in the payload of their message.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The server took the connection down without a closing handshake.
    #[error("the server broke the connection: {0}")]
    Broken(#[source] io::Error),
    /// The server began the closing handshake (RFC 6455 §7.1.2) in the middle of the load.
    #[error("the server closed the connection in the middle, with {}", code_in_words(.code))]
    Closed {
        /// The code of its Close frame.
        code: Option<u16>,
    },
    /// The server ended the connection before it had answered the Close frame.
    #[error("the server did not answer the Close frame")]
    CloseUnanswered,
    /// The server was asked to compress, and does not.
    #[error("the server declined to compress")]
    DeflateDeclined,
    /// The server compresses, but with other parameters than the cell is about (RFC 7692 §7.1).
    #[error("the server agreed to compress with other parameters than were offered")]
    DeflateParameters,
    /// An answer is not what was sent.
    #[error(
        "the server answered message {message} with other bytes: byte {byte} is {found:#04x} \
        and should be {expected:#04x}"
    )]
    Differs {
        /// The message.
        message: u64,
        /// The first byte that differs.
        byte: u64,
        /// What it should be.
        expected: u8,
        /// What it is.
        found: u8,
    },
    /// The server ended the connection in the middle, without a Close frame.
    #[error("the server ended the connection in the middle")]
    Ended,
    /// The server's process cannot be looked into any more.
    #[error("the server's process is gone: {0}")]
    Gone(#[source] io::Error),
    /// The opening handshake failed.
    #[error("the server failed the opening handshake: {0}")]
    Handshake(#[source] HandshakeError),
    /// A compressed message is not in the format of RFC 7692.
    #[error("the server compressed message {message} in a way that cannot be undone")]
    Inflate {
        /// The message.
        message: u64,
    },
    /// An answer is longer or shorter than what was sent.
    #[error(
        "the server answered message {message} with {bytes} B or more in place of {expected} B"
    )]
    Long {
        /// The message.
        message: u64,
        /// The bytes that there are at least.
        bytes: u64,
        /// How many there should be.
        expected: u64,
    },
    /// A server masked a frame, which §5.1 forbids.
    #[error("the server masked a frame of message {message}")]
    Masked {
        /// The message.
        message: u64,
    },
    /// A text message was answered by a binary one, or the other way round.
    #[error("the server answered message {message} as {found} and not as {expected}")]
    Opcode {
        /// The message.
        message: u64,
        /// What it should be.
        expected: Opcode,
        /// What it is.
        found: Opcode,
    },
    /// A frame breaks the protocol.
    #[error("the server broke the protocol in message {message}: {source}")]
    Protocol {
        /// The message.
        message: u64,
        /// How.
        source: ProtocolError,
    },
    /// The server does not listen.
    #[error("the server refused the connection: {0}")]
    Refused(#[source] io::Error),
    /// A frame has a reserved bit that means nothing here (§5.2).
    #[error("the server set reserved bits in a frame of message {message}: {rsv:#05b}")]
    Reserved {
        /// The message.
        message: u64,
        /// RSV1, RSV2 and RSV3 as the bits 4, 2 and 1.
        rsv: u8,
    },
    /// An answer ends early.
    #[error("the server answered message {message} with {bytes} B in place of {expected} B")]
    Short {
        /// The message.
        message: u64,
        /// The bytes that there are.
        bytes: u64,
        /// How many there should be.
        expected: u64,
    },
    /// Answers were due, and nothing came.
    #[error("the server was silent for {} s with answers due", .silence.as_secs_f64())]
    Silent {
        /// How long it was waited for.
        silence: Duration,
    },
    /// Something that a load needs of its own machine cannot be had: not the server's failure.
    #[error("{what}: {source}")]
    System {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The TLS session failed.
    #[error("TLS with the server failed: {0}")]
    Tls(#[source] rustls::Error),
    /// The messages of a cell need more memory than a load may take: not the server's failure.
    #[error("the cell's messages take {bytes} B, more than {bytes_max} B")]
    TooLarge {
        /// What they need.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A message came that nobody had asked for.
    #[error("the server sent more than it was asked for, behind message {message}")]
    Unasked {
        /// Messages that had been answered before.
        message: u64,
    },
    /// The server agreed to compress and then did not.
    #[error("the server did not compress message {message}")]
    Uncompressed {
        /// The message.
        message: u64,
    },
    /// There may not be as many connections as the cell is about: not the server's failure.
    #[error("{files} files have to be open at a time, and the system allows {files_max}")]
    TooManyFiles {
        /// Connections, and what a load needs besides.
        files: u64,
        /// The hard limit of the process.
        files_max: u64,
    },
    /// The cell is about the memory of a process that cannot be looked into: not the server's
    /// failure.
    #[error("this needs a server whose process we can see")]
    Unseen,
    /// The cell asks for what there is no such load for: not the server's failure.
    #[error("there is no such load: {what}")]
    Unsupported {
        /// What does not go together.
        what: &'static str,
    },
}

impl LoadError {
    /// Returns whether the load failed for a reason of its own, so that nothing is known about the
    /// server.
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

    /// Judges an error of a socket that is, or was going to be, connected to the server.
    pub(crate) fn of_socket(error: io::Error) -> Self {
        use io::ErrorKind as Kind;
        // A TLS error travels as the cause of an `io::Error`.
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
                what: "the socket failed",
                source: error,
            },
        }
    }
}

/// Returns a function that tells what of ours failed.
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
