//! A store that writes files into a folder.

pub(crate) mod name;
mod partial;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    fs::{self, File},
    io::AsyncWriteExt,
};

use self::partial::Partials;
use crate::{Announced, Store, StoredFile, UploadError, UploadId};

/// Writes files into a folder of a local file system that supports hard links.
///
/// - A file appears under its name once it is complete, and never replaces another one.
/// - Names that could refer to another place, are hidden, or are reserved on some operating system
///   are refused ([`UploadError::BadName`]).
/// - Incomplete files are in the subfolder `.partial`, and can be resumed after a restart of the
///   process. Those that received nothing for a day are deleted, and so are the oldest if there are
///   more than 4,096.
/// - The result of an upload is `{"name":"…"}`.
///
/// The folder must not be used by two processes at a time. How many files it may hold, and how many
/// bytes, is left to the file system's quota.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    partials: Partials,
    /// The number of partial files that were created since the last cleaning.
    created: AtomicUsize,
    partial_max: usize,
    partial_age_max: Duration,
}

/// A file of a [`Folder`] that is being received.
#[derive(Debug)]
pub struct FolderFile {
    id: UploadId,
    name: String,
    file: File,
    partials: Partials,
    target: Arc<Path>,
    /// Deletes the partial file if it is dropped while it has no bytes.
    is_empty: bool,
}

impl Folder {
    /// Opens a folder. It is created if it does not exist, and old partial files are deleted.
    ///
    /// # Errors
    /// The folder cannot be created or read.
    pub async fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let partials = Partials::new(path.join(".partial"));
        partials.create_folder().await?;
        let folder = Self {
            path,
            partials,
            created: AtomicUsize::new(0),
            partial_max: 4_096,
            partial_age_max: Duration::from_secs(24 * 60 * 60),
        };
        folder.clean().await?;
        Ok(folder)
    }

    /// Sets how long an incomplete file is kept after its last bytes.
    ///
    /// It should be longer than [`Limits::idle_max`](crate::Limits::idle_max): a file that is still
    /// being received must not be deleted.
    #[must_use]
    pub fn with_partial_age_max(mut self, age_max: Duration) -> Self {
        self.partial_age_max = age_max;
        self
    }

    /// Sets how many incomplete files are kept. It should be more than
    /// [`Limits::open_max`](crate::Limits::open_max).
    #[must_use]
    pub fn with_partial_max(mut self, partial_max: usize) -> Self {
        self.partial_max = partial_max;
        self
    }

    /// Deletes partial files that are too old or too many.
    async fn clean(&self) -> io::Result<()> {
        self.created.store(0, Ordering::Relaxed);
        let (max, age_max) = (self.partial_max, self.partial_age_max);
        self.partials.clean(max, age_max).await
    }

    fn file(&self, id: UploadId, announced: &Announced, file: File, bytes: u64) -> FolderFile {
        FolderFile {
            id,
            name: announced.name.clone(),
            file,
            partials: self.partials.clone(),
            target: self.path.join(&announced.name).into(),
            is_empty: bytes == 0,
        }
    }
}

impl Store for Folder {
    type File = FolderFile;

    async fn create(&self, id: UploadId, announced: &Announced) -> Result<FolderFile, UploadError> {
        name::check(&announced.name)?;
        match fs::symlink_metadata(self.path.join(&announced.name)).await {
            Ok(_) => return Err(UploadError::Exists),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // Cleaning reads the whole folder, so it is not done for every file.
        if self.created.fetch_add(1, Ordering::Relaxed) >= self.partial_max / 8 {
            self.clean().await?;
        }
        let file = self.partials.create(id, announced).await?;
        Ok(self.file(id, announced, file, 0))
    }

    async fn reopen(
        &self,
        id: UploadId,
        announced: &Announced,
    ) -> Result<(FolderFile, u64), UploadError> {
        let (file, bytes) = self.partials.open(id, announced).await?;
        Ok((self.file(id, announced, file, bytes), bytes))
    }
}

impl StoredFile for FolderFile {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.is_empty = false;
        self.file.write_all(bytes).await?;
        // Waits until the operating system has the bytes, so that they survive this process.
        self.file.flush().await
    }

    async fn finish(mut self) -> Result<Value, UploadError> {
        self.is_empty = false;
        self.file.sync_all().await?;
        // A hard link, unlike a rename, never replaces a file.
        let linked = fs::hard_link(self.partials.bytes_of(self.id), &self.target).await;
        match linked {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.partials.remove(self.id);
                return Err(UploadError::Exists);
            }
            linked => linked?,
        }
        self.partials.remove(self.id);
        Ok(json!({ "name": self.name }))
    }

    async fn discard(mut self) {
        self.is_empty = false;
        self.partials.remove(self.id);
    }
}

impl Drop for FolderFile {
    fn drop(&mut self) {
        if self.is_empty {
            self.partials.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests;
