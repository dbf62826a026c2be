//! Stores for tests.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use linerate_files::{Announced, Store, StoredFile, UploadError, UploadId};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Keeps the bytes in memory, and returns them as text.
#[derive(Debug)]
pub(crate) struct Memory;

#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Store for Memory {
    type File = Buffer;

    async fn create(&self, _id: UploadId, announced: &Announced) -> Result<Buffer, UploadError> {
        match announced.name.as_str() {
            "refused" => Err(UploadError::Refused {
                code: "quota",
                message: "There is no quota for this file.".to_owned(),
            }),
            _ => Ok(Buffer(Vec::new())),
        }
    }
}

impl StoredFile for Buffer {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.0.starts_with(b"full") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    async fn finish(self) -> Result<Value, UploadError> {
        Ok(json!(String::from_utf8_lossy(&self.0)))
    }
}

/// Takes a piece whenever it gets a permit, and forgets it.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) taken: Arc<AtomicU64>,
}

impl Store for Slow {
    type File = Self;

    async fn create(&self, _id: UploadId, _announced: &Announced) -> Result<Self, UploadError> {
        Ok(self.clone())
    }
}

impl StoredFile for Slow {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.permits.acquire().await.unwrap().forget();
        self.taken.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn finish(self) -> Result<Value, UploadError> {
        Ok(Value::Null)
    }
}
