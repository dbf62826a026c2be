//! Why a session failed, and how that is told to the client.

use std::fmt;
use std::time::Duration;

use super::message::Reply;
use crate::{decode::DecodeError, format::FormatError};

/// Why a session ended before its figures were complete.
///
/// The text of `Display` is for the person who uploads: a sentence with the value and the limit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes of a file came after `finish`.
    AfterFinish,
    /// The file can't be decompressed.
    Decode(DecodeError),
    /// No file was announced, or more than `files_max`.
    FileCount {
        /// The files that `start` announced.
        files: usize,
        /// The limit.
        files_max: usize,
    },
    /// The format that `start` gives is none.
    Format(FormatError),
    /// It held more memory than any other upload, and others needed some.
    GaveWay {
        /// The bytes that it held.
        bytes: u64,
        /// The bytes that all uploads may take up together.
        bytes_max: u64,
    },
    /// Nothing was asked of the figures for too long.
    Idle {
        /// The limit.
        idle_max: Duration,
    },
    /// One of several files is refused.
    InFile {
        /// Which one, from 1.
        file: usize,
        /// Why.
        reason: Box<Self>,
    },
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
    /// The figures and lines need more memory than is left for all uploads together.
    NoMemory {
        /// The bytes that all uploads may take up together.
        bytes_max: u64,
    },
    /// Something else came before `start`.
    NotStarted,
    /// A file that is not the last one was announced without its size.
    OpenEndedFile {
        /// Which one, from 1.
        file: usize,
    },
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
    /// More questions came than may wait for their answers.
    TooManyQuestions {
        /// The limit.
        questions_max: usize,
    },
    /// The files have more bytes than `upload_bytes_max`.
    TooLarge {
        /// The bytes that `start` announced, or that came.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The server follows no file of the name that was asked for.
    UnknownFile,
    /// A text message is no JSON of the protocol.
    UnknownMessage,
    /// The session that was to be resumed is unknown: it never was, or its time is over.
    UnknownSession,
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
            Self::Decode(DecodeError::Corrupt { .. } | DecodeError::Truncated) => "damaged",
            Self::Decode(
                DecodeError::Ratio { .. }
                | DecodeError::TooLarge { .. }
                | DecodeError::Window { .. },
            )
            | Self::TooLarge { .. } => "too_large",
            Self::Decode(_) | Self::NotALog { .. } => "not_a_log",
            Self::Format(_) => "unknown_format",
            Self::Idle { .. } => "idle",
            Self::InFile { reason, .. } => reason.code(),
            Self::GaveWay { .. } | Self::NoMemory { .. } => "no_memory",
            Self::AfterFinish
            | Self::FileCount { .. }
            | Self::NameTooLong { .. }
            | Self::NotStarted
            | Self::OpenEndedFile { .. }
            | Self::SecondStart
            | Self::TextTooLong { .. }
            | Self::TooManyQuestions { .. }
            | Self::UnknownMessage => "protocol",
            Self::SizeMismatch { .. } => "size_mismatch",
            Self::Stalled { .. } => "stalled",
            Self::UnknownFile => "unknown_file",
            Self::UnknownSession => "unknown_session",
            Self::WindowExceeded { .. } => "window_exceeded",
        }
    }
}

impl SessionError {
    /// Returns the message that tells why a session is over, for a caller that ends it without it.
    pub fn to_json(&self) -> String {
        Reply::of_error(self)
    }
}

impl std::error::Error for SessionError {}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterFinish => f.write_str("Bytes came after the end of the upload."),
            Self::Decode(error) => sentence(f, error),
            Self::FileCount { files, files_max } => {
                write!(
                    f,
                    "{files} files were announced; 1 to {files_max} are allowed."
                )
            }
            Self::Format(error) => sentence(f, error),
            Self::GaveWay { bytes, bytes_max } => write!(
                f,
                "Other uploads needed memory, and this one held the most: {bytes} of the {bytes_max} bytes that \
                 all uploads may take up together (logs.memory_bytes_max). Try again later, or without keeping \
                 the lines."
            ),
            Self::Idle { idle_max } => write!(
                f,
                "Nothing was asked for {} seconds, so the figures were given up.",
                idle_max.as_secs()
            ),
            Self::InFile { file, reason } => write!(f, "File {file}: {reason}"),
            Self::NameTooLong { bytes, bytes_max } => write!(
                f,
                "The file's name has {bytes} bytes; at most {bytes_max} are allowed."
            ),
            Self::NotALog { requests, lines } => write!(
                f,
                "This does not look like an access log in a format that is known: \
                 {requests} of the first {lines} lines are requests."
            ),
            Self::NoMemory { bytes_max } => write!(
                f,
                "The server has no memory left for this log: all uploads together may take up \
                 {bytes_max} bytes (logs.memory_bytes_max). Try again later, or without keeping the lines."
            ),
            Self::NotStarted => f.write_str("The upload was not started."),
            Self::OpenEndedFile { file } => {
                write!(
                    f,
                    "File {file} has no size; only the last one may be open-ended."
                )
            }
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
                    "{announced} bytes were announced, but {than} came: {received}. \
                     Was the file changed while it was read?"
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
                "There are {bytes} bytes to read; at most {bytes_max} are allowed."
            ),
            Self::TooManyQuestions { questions_max } => write!(
                f,
                "More questions came than may wait for their answers; that are {questions_max}."
            ),
            Self::UnknownFile => f.write_str("The server follows no file of this name."),
            Self::UnknownMessage => {
                f.write_str("A text message is not one of the upload protocol.")
            }
            Self::UnknownSession => f.write_str(
                "The upload can't go on: the server doesn't know it any more. Start it again.",
            ),
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

/// Writes an error of another part as a sentence.
fn sentence(f: &mut fmt::Formatter<'_>, error: &impl fmt::Display) -> fmt::Result {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    write!(f, "{}{}.", first.unwrap_or_default(), chars.as_str())
}
