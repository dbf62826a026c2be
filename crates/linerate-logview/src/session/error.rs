//! Why a session failed, and how the client is informed.

use std::fmt;
use std::time::Duration;

use crate::{decode::DecodeError, format::FormatError};

/// Why a session ended before its figures were complete.
///
/// The `Display` text is shown to the person who uploads: a complete sentence with the value and
/// the limit.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes arrived after `finish`.
    AfterFinish,
    /// The file cannot be decompressed.
    Decode(DecodeError),
    /// `start` announced no file, or more than `files_max`.
    FileCount {
        /// The number of files that `start` announced.
        files: usize,
        /// The limit.
        files_max: usize,
    },
    /// The format that `start` names is invalid.
    Format(FormatError),
    /// The session was ended because it held the most memory while other uploads needed some.
    GaveWay {
        /// The bytes that this session held.
        bytes: u64,
        /// The bytes that all uploads may use together.
        bytes_max: u64,
    },
    /// The client asked nothing about the finished figures for too long.
    Idle {
        /// The limit.
        idle_max: Duration,
    },
    /// One of several files was rejected.
    InFile {
        /// The number of the file, from 1.
        file: usize,
        /// Why it was rejected.
        reason: Box<Self>,
    },
    /// A file name is longer than `name_bytes_max`.
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too few lines at the beginning of the file are requests.
    NotALog {
        /// The number of lines that are requests.
        requests: u64,
        /// The number of lines that were examined.
        lines: u64,
    },
    /// The figures and lines need more memory than remains for all uploads together.
    NoMemory {
        /// The bytes that all uploads may use together.
        bytes_max: u64,
    },
    /// A message arrived that requires a `start` before it.
    NotStarted,
    /// A file other than the last one was announced without a size.
    OpenEndedFile {
        /// The number of the file, from 1.
        file: usize,
    },
    /// The client sent a second `start`, `follow` or `resume`.
    SecondStart,
    /// More or fewer bytes arrived than were announced.
    SizeMismatch {
        /// The number of bytes that `start` announced.
        announced: u64,
        /// The number of bytes that arrived. If there are too many, this includes the chunk that
        /// exceeded the announced size.
        received: u64,
    },
    /// The client sent nothing for too long.
    Stalled {
        /// The limit.
        silence_max: Duration,
    },
    /// A text message is longer than `text_bytes_max`.
    TextTooLong {
        /// The length of the message in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too many questions are waiting for answers.
    TooManyQuestions {
        /// The limit.
        questions_max: usize,
    },
    /// The files exceed `upload_bytes_max`.
    TooLarge {
        /// The number of bytes that `start` announced or that arrived.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The server does not follow a file of the requested name.
    UnknownFile,
    /// A text message is not a JSON message of the protocol.
    UnknownMessage,
    /// The session to resume does not exist: it never did, or it has expired.
    UnknownSession,
    /// The client sent more than the window allows without waiting for acknowledgements.
    WindowExceeded {
        /// The number of bytes beyond the last acknowledgement.
        bytes: u64,
        /// The limit.
        window_bytes: u64,
    },
}

impl SessionError {
    /// Returns the error code that is sent to the client.
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

impl std::error::Error for SessionError {}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterFinish => f.write_str("More bytes arrived after the end of the upload."),
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
                 all uploads may use together (logs.memory_bytes_max). Try again later, or without keeping \
                 the lines."
            ),
            Self::Idle { idle_max } => write!(
                f,
                "No question was asked for {} seconds, so the figures were discarded.",
                idle_max.as_secs()
            ),
            Self::InFile { file, reason } => write!(f, "File {file}: {reason}"),
            Self::NameTooLong { bytes, bytes_max } => write!(
                f,
                "The file name is {bytes} bytes long; at most {bytes_max} are allowed."
            ),
            Self::NotALog { requests, lines } => write!(
                f,
                "This does not look like an access log in a known format: \
                 {requests} of the first {lines} lines are requests."
            ),
            Self::NoMemory { bytes_max } => write!(
                f,
                "The server has no memory left for this log: all uploads together may use \
                 {bytes_max} bytes (logs.memory_bytes_max). Try again later, or without keeping the lines."
            ),
            Self::NotStarted => f.write_str("The upload has not been started."),
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
                    "{announced} bytes were announced, but {than} arrived: {received}. \
                     Was the file changed while it was being read?"
                )
            }
            Self::Stalled { silence_max } => write!(
                f,
                "Nothing arrived for {} seconds, so the upload was aborted.",
                silence_max.as_secs()
            ),
            Self::TextTooLong { bytes, bytes_max } => write!(
                f,
                "A text message is {bytes} bytes long; at most {bytes_max} are allowed."
            ),
            Self::TooLarge { bytes, bytes_max } => write!(
                f,
                "The upload has {bytes} bytes; at most {bytes_max} are allowed."
            ),
            Self::TooManyQuestions { questions_max } => write!(
                f,
                "Too many questions are waiting for answers; at most {questions_max} may wait."
            ),
            Self::UnknownFile => f.write_str("The server does not follow a file of this name."),
            Self::UnknownMessage => {
                f.write_str("A text message is not part of the upload protocol.")
            }
            Self::UnknownSession => f.write_str(
                "The upload cannot be resumed: the server no longer knows it. Start it again.",
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

/// Writes an error of another module as a sentence, with a capital letter and a full stop.
fn sentence(f: &mut fmt::Formatter<'_>, error: &impl fmt::Display) -> fmt::Result {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    write!(f, "{}{}.", first.unwrap_or_default(), chars.as_str())
}
