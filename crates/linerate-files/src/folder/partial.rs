//! Incomplete files: the bytes in `ID.part`, and what was announced in `ID.json`.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};
use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncReadExt, AsyncSeekExt},
};

use crate::{Announced, UploadError, UploadId};

/// The most bytes of `ID.json` that are read: more than the longest name, escaped, needs.
const NOTE_BYTES_MAX: u64 = 16 << 10;

/// The folder of the incomplete files.
#[derive(Clone, Debug)]
pub(super) struct Partials {
    path: Arc<Path>,
}

/// What `ID.json` contains.
#[derive(Deserialize, Serialize)]
struct Note {
    name: String,
    size: u64,
}

impl Partials {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path: path.into() }
    }

    pub(super) async fn create_folder(&self) -> io::Result<()> {
        fs::create_dir_all(&self.path).await
    }

    /// Creates the files of an upload.
    pub(super) async fn create(&self, id: UploadId, announced: &Announced) -> io::Result<File> {
        let note = serde_json::to_vec(&Note {
            name: announced.name.clone(),
            size: announced.size,
        })?;
        fs::write(self.note_of(id), note).await?;
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).open(self.bytes_of(id));
        created.await.inspect_err(|_| self.remove(id))
    }

    /// Opens the files of an upload at their end; returns the number of bytes as well.
    pub(super) async fn open(
        &self,
        id: UploadId,
        announced: &Announced,
    ) -> Result<(File, u64), UploadError> {
        let note = self.read_note(id).await.map_err(or_unknown)?;
        if (&note.name, note.size) != (&announced.name, announced.size) {
            return Err(UploadError::Mismatch);
        }
        let file = OpenOptions::new().write(true).open(self.bytes_of(id)).await;
        let mut file = file.map_err(or_unknown)?;
        let bytes = file.seek(io::SeekFrom::End(0)).await?;
        if bytes > note.size {
            return Err(UploadError::Mismatch);
        }
        Ok((file, bytes))
    }

    /// Deletes the files of an upload, as far as they exist.
    pub(super) fn remove(&self, id: UploadId) {
        for path in [self.bytes_of(id), self.note_of(id)] {
            _ = std::fs::remove_file(path);
        }
    }

    /// Deletes the files of uploads that received no bytes for `age_max`, and the oldest ones
    /// beyond `max`.
    pub(super) async fn clean(&self, max: usize, age_max: Duration) -> io::Result<()> {
        let mut found = Vec::new();
        let mut entries = fs::read_dir(&self.path).await?;
        while let Some(entry) = entries.next_entry().await? {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let id = path.file_stem().and_then(|stem| stem.to_str());
            let Some(id) = id.and_then(UploadId::parse) else {
                continue;
            };
            // Files may be completed meanwhile. A note without bytes was left by a crash.
            let metadata = match fs::metadata(self.bytes_of(id)).await {
                Err(_) => fs::metadata(path).await,
                found => found,
            };
            if let Ok(metadata) = metadata {
                found.push((metadata.modified()?, id));
            }
        }
        found.sort_unstable_by_key(|(modified, _)| *modified);
        let surplus = found.len().saturating_sub(max);
        let now = SystemTime::now();
        for (index, (modified, id)) in found.into_iter().enumerate() {
            let age = now.duration_since(modified).unwrap_or_default();
            if index < surplus || age >= age_max {
                self.remove(id);
            }
        }
        Ok(())
    }

    /// Returns the path of the bytes of an upload.
    pub(super) fn bytes_of(&self, id: UploadId) -> PathBuf {
        self.path.join(format!("{id}.part"))
    }

    fn note_of(&self, id: UploadId) -> PathBuf {
        self.path.join(format!("{id}.json"))
    }

    async fn read_note(&self, id: UploadId) -> io::Result<Note> {
        let mut text = Vec::new();
        let file = File::open(self.note_of(id)).await?;
        file.take(NOTE_BYTES_MAX).read_to_end(&mut text).await?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// Returns the error for an upload whose files cannot be opened.
fn or_unknown(error: io::Error) -> UploadError {
    match error.kind() {
        io::ErrorKind::NotFound => UploadError::UnknownUpload,
        _ => error.into(),
    }
}
