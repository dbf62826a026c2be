//! Why a session failed, and how the client is informed.

use std::{fmt::Display, time::Duration};

use thiserror::Error;

use crate::{decode::DecodeError, format::FormatError};

/// Why a session ended before its figures were complete.
///
/// The `Display` text is shown to the person who uploads: a complete sentence with the value and
/// the limit.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SessionError {
    /// Bytes arrived after `finish`.
    #[error("More bytes arrived after the end of the upload.")]
    AfterFinish,
    /// The file cannot be decompressed.
    #[error("{}", sentence(.0))]
    Decode(DecodeError),
    /// `start` announced no file, or more than `files_max`.
    #[error("{files} files were announced; 1 to {files_max} are allowed.")]
    FileCount {
        /// The number of files that `start` announced.
        files: usize,
        /// The limit.
        files_max: usize,
    },
    /// The format that `start` names is invalid.
    #[error("{}", sentence(.0))]
    Format(FormatError),
    /// The session was ended because it held the most memory while other uploads needed some.
    #[error(
        "Other uploads needed memory, and this one held the most: {bytes} of the {bytes_max} bytes \
         that all uploads may use together (logs.memory_bytes_max). Try again later, or without \
         keeping the lines."
    )]
    GaveWay {
        /// The bytes that this session held.
        bytes: u64,
        /// The bytes that all uploads may use together.
        bytes_max: u64,
    },
    /// The client asked nothing about the finished figures for too long.
    #[error(
        "No question was asked for {} seconds, so the figures were discarded.",
        idle_max.as_secs()
    )]
    Idle {
        /// The limit.
        idle_max: Duration,
    },
    /// One of several files was rejected.
    #[error("File {file}: {reason}")]
    InFile {
        /// The number of the file, from 1.
        file: usize,
        /// Why it was rejected.
        reason: Box<Self>,
    },
    /// A file name is longer than `name_bytes_max`.
    #[error("The file name is {bytes} bytes long; at most {bytes_max} are allowed.")]
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too few lines at the beginning of the file are requests.
    #[error(
        "This does not look like an access log in a known format: {requests} of the first {lines} \
         lines are requests."
    )]
    NotALog {
        /// The number of lines that are requests.
        requests: u64,
        /// The number of lines that were examined.
        lines: u64,
    },
    /// The figures and lines need more memory than remains for all uploads together.
    #[error(
        "The server has no memory left for this log: all uploads together may use {bytes_max} \
         bytes (logs.memory_bytes_max). Try again later, or without keeping the lines."
    )]
    NoMemory {
        /// The bytes that all uploads may use together.
        bytes_max: u64,
    },
    /// A message arrived that requires a `start` before it.
    #[error("The upload has not been started.")]
    NotStarted,
    /// A file other than the last one was announced without a size.
    #[error("File {file} has no size; only the last one may be open-ended.")]
    OpenEndedFile {
        /// The number of the file, from 1.
        file: usize,
    },
    /// The client sent a second `start`, `follow` or `resume`.
    #[error("The upload was started twice.")]
    SecondStart,
    /// More or fewer bytes arrived than were announced.
    #[error(
        "{announced} bytes were announced, but {} arrived: {received}. Was the file changed while \
         it was being read?",
        if received > announced { "more" } else { "fewer" }
    )]
    SizeMismatch {
        /// The number of bytes that `start` announced.
        announced: u64,
        /// The number of bytes that arrived. If there are too many, this includes the chunk that
        /// exceeded the announced size.
        received: u64,
    },
    /// The client sent nothing for too long.
    #[error("Nothing arrived for {} seconds, so the upload was aborted.", silence_max.as_secs())]
    Stalled {
        /// The limit.
        silence_max: Duration,
    },
    /// A text message is longer than `text_bytes_max`.
    #[error("A text message is {bytes} bytes long; at most {bytes_max} are allowed.")]
    TextTooLong {
        /// The length of the message in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// Too many questions are waiting for answers.
    #[error("Too many questions are waiting for answers; at most {questions_max} may wait.")]
    TooManyQuestions {
        /// The limit.
        questions_max: usize,
    },
    /// The files exceed `upload_bytes_max`.
    #[error("The upload has {bytes} bytes; at most {bytes_max} are allowed.")]
    TooLarge {
        /// The number of bytes that `start` announced or that arrived.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The server does not follow a file of the requested name.
    #[error("The server does not follow a file of this name.")]
    UnknownFile,
    /// A text message is not a JSON message of the protocol.
    #[error("A text message is not part of the upload protocol.")]
    UnknownMessage,
    /// The upload to resume or to view does not exist: it never did, or it has expired. All such
    /// names have the same error, so that it reveals nothing about the uploads of others.
    #[error(
        "The server does not have an upload of this name. Uploads are discarded some time after \
         the last page that shows them was closed."
    )]
    UnknownSession,
    /// The client sent more than the window allows without waiting for acknowledgements.
    #[error(
        "{bytes} bytes were sent without waiting for an acknowledgement; at most {window_bytes} \
         are allowed."
    )]
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

/// Returns an error of another module as a sentence, with a capital letter and a full stop.
fn sentence(error: &impl Display) -> String {
    let text = error.to_string();
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}
