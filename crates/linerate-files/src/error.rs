//! Why an upload failed, and how the client is informed.

use std::{io, time::Duration};

use thiserror::Error;

use crate::Limits;

/// Why an upload failed. The other uploads of the connection continue.
///
/// The `Display` text is sent to the client: a complete sentence with the value and the limit.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum UploadError {
    /// The name of the file cannot be used.
    #[error("The file name cannot be used: {reason}.")]
    BadName {
        /// What is wrong with the name.
        reason: &'static str,
    },
    /// The limit of uploads is reached, and none of the others can give way.
    #[error("The server receives {max} uploads already, which is its limit. Try again later.")]
    Busy {
        /// [`Limits::open_max`] or [`Limits::per_connection_max`].
        max: usize,
    },
    /// A file of the same name exists, and is not overwritten.
    #[error("A file of this name exists already.")]
    Exists,
    /// No bytes arrived for too long.
    #[error("No bytes of the file arrived for {} seconds.", idle_max.as_secs())]
    Expired {
        /// [`Limits::idle_max`].
        idle_max: Duration,
    },
    /// The upload to resume belongs to a file with another name or size.
    #[error("The upload was started for a file with another name or size.")]
    Mismatch,
    /// The application refuses the file.
    #[error("{message}")]
    Refused {
        /// The error code for programs.
        code: &'static str,
        /// The sentence for people.
        message: String,
    },
    /// The store failed. The cause is not sent to the client, because it may name paths.
    #[error("The server cannot store the file.")]
    Storage(#[from] io::Error),
    /// The upload is continued on another connection.
    #[error("The upload is continued on another connection.")]
    Taken,
    /// The file is larger than [`Limits::file_bytes_max`].
    #[error("The file has {bytes} bytes; at most {bytes_max} are allowed.")]
    TooLarge {
        /// The announced size.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// More bytes arrived than were announced.
    #[error("{size} bytes were announced, but at least {received} arrived.")]
    TooManyBytes {
        /// The bytes that arrived, including the piece that exceeded the announced size.
        received: u64,
        /// The announced size.
        size: u64,
    },
    /// The server does not have the upload to resume: it never did, or it has expired.
    #[error("The server does not have this upload.")]
    UnknownUpload,
    /// The bytes that follow do not continue the upload.
    #[error("Bytes from offset {offset} on were announced; the upload continues at {expected}.")]
    WrongOffset {
        /// Where the client wants to continue.
        offset: u64,
        /// Where the upload continues.
        expected: u64,
    },
}

impl UploadError {
    /// Returns the error code that is sent to the client.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad_name",
            Self::Busy { .. } => "busy",
            Self::Exists => "exists",
            Self::Expired { .. } => "expired",
            Self::Mismatch => "mismatch",
            Self::Refused { code, .. } => code,
            Self::Storage(_) => "storage",
            Self::Taken => "taken",
            Self::TooLarge { .. } => "too_large",
            Self::TooManyBytes { .. } => "size_mismatch",
            Self::UnknownUpload => "unknown_upload",
            Self::WrongOffset { .. } => "wrong_offset",
        }
    }

    pub(crate) fn expired(limits: &Limits) -> Self {
        Self::Expired {
            idle_max: limits.idle_max,
        }
    }
}

/// How a client broke the protocol, which ends the connection.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub(crate) enum ProtocolError {
    #[error("More than {bytes_max} bytes arrived for uploads that have ended.")]
    Discarded { bytes_max: u64 },
    #[error("The number {upload} was used before; the numbers of uploads must increase.")]
    NumberUsed { upload: u64 },
    #[error("A binary message arrived before `data` told which upload it belongs to.")]
    NotSelected,
    #[error("A text message is longer than {bytes_max} bytes.")]
    TextTooLong { bytes_max: usize },
    #[error("A text message is not part of the upload protocol.")]
    UnknownMessage,
    #[error("There was never an upload with the number {upload}.")]
    UnknownNumber { upload: u64 },
}
