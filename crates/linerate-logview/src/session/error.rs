//! Why a session failed, and how that is told to the client.

use std::fmt;
use std::time::Duration;

/// Why a session ended before its figures were complete.
///
/// The text of `Display` is for the person who uploads: a sentence with the value and the limit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// The file is compressed; this is the name of the program that did it.
    Compressed(&'static str),
    /// The name of the file is longer than `name_bytes_max`.
    NameTooLong {
        /// The bytes of the name.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Hardly a line of the file's beginning is a request.
    NotALog {
        /// The lines that are.
        requests: u64,
        /// The lines that were looked at.
        lines: u64,
    },
    /// Something else came before `start`.
    NotStarted,
    /// `start` came twice.
    SecondStart,
    /// More or fewer bytes came than were announced.
    SizeMismatch {
        /// The bytes that `start` announced.
        announced: u64,
        /// The bytes that came; where they are more, up to the end of the first chunk beyond.
        received: u64,
    },
    /// The client was silent for too long.
    Stalled {
        /// The limit.
        silence_max: Duration,
    },
    /// A text message is longer than `text_bytes_max`.
    TextTooLong {
        /// The bytes of the message.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The announced file is larger than `upload_bytes_max`.
    TooLarge {
        /// The bytes that `start` announced.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// A text message is no JSON of the protocol.
    UnknownMessage,
    /// The client did not wait for acknowledgements.
    WindowExceeded {
        /// The bytes beyond the last acknowledgement.
        bytes: u64,
        /// The limit.
        window_bytes: u64,
    },
}

impl SessionError {
    /// Returns the code that the client is told.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Compressed(_) | Self::NotALog { .. } => "not_a_log",
            Self::NameTooLong { .. }
            | Self::NotStarted
            | Self::SecondStart
            | Self::TextTooLong { .. }
            | Self::UnknownMessage => "protocol",
            Self::SizeMismatch { .. } => "size_mismatch",
            Self::Stalled { .. } => "stalled",
            Self::TooLarge { .. } => "too_large",
            Self::WindowExceeded { .. } => "window_exceeded",
        }
    }
}

impl std::error::Error for SessionError {}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compressed(by) => {
                write!(f, "The file is compressed by {by}. Unpack it first.")
            }
            Self::NameTooLong { bytes, bytes_max } => write!(
                f,
                "The file's name has {bytes} bytes; at most {bytes_max} are allowed."
            ),
            Self::NotALog { requests, lines } => write!(
                f,
                "This does not look like an access log in the common or combined format: \
                 {requests} of the first {lines} lines are requests."
            ),
            Self::NotStarted => f.write_str("The upload was not started."),
            Self::SecondStart => f.write_str("The upload was started twice."),
            Self::SizeMismatch {
                announced,
                received,
            } => {
                let than = if received > announced {
                    "more"
                } else {
                    "fewer"
                };
                write!(
                    f,
                    "The file was announced with {announced} bytes, but {than} came: {received}. \
                     Was it changed while it was read?"
                )
            }
            Self::Stalled { silence_max } => write!(
                f,
                "Nothing came for {} seconds, so the upload was given up.",
                silence_max.as_secs()
            ),
            Self::TextTooLong { bytes, bytes_max } => write!(
                f,
                "A text message has {bytes} bytes; at most {bytes_max} are allowed."
            ),
            Self::TooLarge { bytes, bytes_max } => write!(
                f,
                "The file has {bytes} bytes; at most {bytes_max} are allowed."
            ),
            Self::UnknownMessage => {
                f.write_str("A text message is not one of the upload protocol.")
            }
            Self::WindowExceeded {
                bytes,
                window_bytes,
            } => write!(
                f,
                "{bytes} bytes were sent without waiting for an acknowledgement; \
                 at most {window_bytes} are allowed."
            ),
        }
    }
}
