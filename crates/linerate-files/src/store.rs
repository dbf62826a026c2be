//! Where the bytes of uploads go: the traits that an application implements.

use std::{future::Future, io};

use serde_json::Value;

use crate::{UploadError, UploadId};

/// What a client announced about a file. It is not to be trusted.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Announced {
    /// The name, at most [`Limits::name_bytes_max`](crate::Limits::name_bytes_max) bytes of any
    /// characters, including `/` and NUL.
    pub name: String,
    /// The number of bytes.
    pub size: u64,
}

impl Announced {
    /// Creates an announcement, for tests of stores.
    pub fn new(name: impl Into<String>, size: u64) -> Self {
        Self {
            name: name.into(),
            size,
        }
    }
}

/// Decides which files are received, and creates the places for their bytes.
pub trait Store: Send + Sync + 'static {
    /// A file that is being received.
    type File: StoredFile;

    /// Prepares to receive a file. The identifier is new.
    ///
    /// # Errors
    /// The file is refused, for example with [`UploadError::Refused`].
    fn create(
        &self,
        id: UploadId,
        announced: &Announced,
    ) -> impl Future<Output = Result<Self::File, UploadError>> + Send;

    /// Finds a file that is not in memory: the process was started again, or the upload has
    /// expired. Returns it with the number of bytes that it has.
    ///
    /// A store that does not keep bytes outside of memory need not implement this.
    ///
    /// # Errors
    /// There is no such file ([`UploadError::UnknownUpload`]), or it was announced differently
    /// ([`UploadError::Mismatch`]).
    fn reopen(
        &self,
        id: UploadId,
        announced: &Announced,
    ) -> impl Future<Output = Result<(Self::File, u64), UploadError>> + Send {
        let _ = (id, announced);
        async { Err(UploadError::UnknownUpload) }
    }
}

/// A file that is being received. If it is dropped, the upload has expired.
pub trait StoredFile: Send + 'static {
    /// Takes the next bytes. The client is slowed down until this completes, and then the bytes are
    /// acknowledged.
    ///
    /// # Errors
    /// The bytes cannot be stored. The upload then fails.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;

    /// Completes the file, which has all bytes, and returns what the client is told, such as a
    /// digest.
    ///
    /// # Errors
    /// The file cannot be completed. The upload then fails.
    fn finish(self) -> impl Future<Output = Result<Value, UploadError>> + Send;

    /// Deletes the file because the client has cancelled the upload.
    fn discard(self) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        async {}
    }
}
