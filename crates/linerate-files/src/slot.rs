//! One upload, and a connection's claim to it.

use std::{
    mem,
    sync::{
        Arc, Mutex as StdMutex, MutexGuard as StdMutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    sync::{Mutex, MutexGuard, OwnedSemaphorePermit},
    time::Instant,
};

use crate::{Announced, StoredFile, UploadError, UploadId};

/// An upload that is kept, with or without a connection.
pub(crate) struct Slot<F> {
    pub(crate) id: UploadId,
    pub(crate) announced: Announced,
    content: Mutex<Content<F>>,
    /// The ticket of the claim that may write: the newest one.
    holder: AtomicU64,
    activity: StdMutex<Activity>,
}

enum Content<F> {
    /// The result that the client was told, or should have been.
    Done(Value),
    /// The upload failed, was cancelled or has expired, or a write was interrupted.
    Gone,
    Open {
        file: F,
        bytes: u64,
    },
}

struct Activity {
    /// When the upload last received bytes, got a connection or lost it.
    since: Instant,
    is_attached: bool,
    is_done: bool,
    /// Limits the number of slots.
    place: Option<OwnedSemaphorePermit>,
}

/// How far an upload has come.
#[derive(Debug, PartialEq)]
pub(crate) enum Progress {
    Done(Value),
    /// The number of stored bytes.
    Open(u64),
}

/// How willingly a slot gives way: complete uploads first, then those without bytes for longest.
pub(crate) type Precedence = (bool, Duration);

impl<F> Slot<F> {
    pub(crate) fn new(
        id: UploadId,
        announced: Announced,
        (file, bytes): (F, u64),
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            id,
            announced,
            content: Mutex::new(Content::Open { file, bytes }),
            holder: AtomicU64::new(0),
            activity: StdMutex::new(Activity {
                since: Instant::now(),
                is_attached: false,
                is_done: false,
                place: Some(place),
            }),
        }
    }

    /// Returns how willingly the upload gives way to a new one, or `None` if it has a connection.
    pub(crate) fn precedence(&self) -> Option<Precedence> {
        let activity = self.activity();
        let detached = !activity.is_attached;
        detached.then(|| (activity.is_done, activity.since.elapsed()))
    }

    /// Ends the upload if no bytes have arrived for `idle_max`. Returns whether it has ended.
    pub(crate) fn expire(&self, idle_max: Duration) -> bool {
        if self.activity().since.elapsed() < idle_max {
            return false;
        }
        // The lock is held while the store takes bytes.
        let Ok(mut content) = self.content.try_lock() else {
            return false;
        };
        *content = Content::Gone;
        drop(self.activity().place.take());
        true
    }

    fn activity(&self) -> StdMutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection's right to continue an upload, until another connection claims it.
pub(crate) struct Claim<F> {
    slot: Arc<Slot<F>>,
    ticket: u64,
}

impl<F> Claim<F> {
    /// Takes the upload from the connection that holds it.
    pub(crate) fn new(slot: Arc<Slot<F>>) -> Self {
        let mut activity = slot.activity();
        let ticket = slot.holder.fetch_add(1, Ordering::Relaxed) + 1;
        activity.is_attached = true;
        activity.since = Instant::now();
        drop(activity);
        Self { slot, ticket }
    }

    pub(crate) fn slot(&self) -> &Slot<F> {
        &self.slot
    }

    fn is_held(&self) -> bool {
        self.slot.holder.load(Ordering::Relaxed) == self.ticket
    }
}

impl<F: StoredFile> Claim<F> {
    /// Returns how far the upload has come, once the store has taken what another connection
    /// passed to it. Returns `None` if the upload has ended without a result.
    pub(crate) async fn progress(&self) -> Option<Progress> {
        match &*self.slot.content.lock().await {
            Content::Done(result) => Some(Progress::Done(result.clone())),
            Content::Gone => None,
            Content::Open { bytes, .. } => Some(Progress::Open(*bytes)),
        }
    }

    /// Passes bytes to the store; returns the number of bytes that it has then.
    ///
    /// If the future is dropped, the upload is gone, because the number of stored bytes is unknown.
    pub(crate) async fn write(&self, piece: &[u8]) -> Result<u64, UploadError> {
        let mut content = self.lock().await?;
        let size = self.slot.announced.size;
        let (mut file, stored) = match mem::replace(&mut *content, Content::Gone) {
            Content::Open { file, bytes } => (file, bytes),
            other => {
                *content = other;
                return Err(UploadError::UnknownUpload);
            }
        };
        let received = stored.saturating_add(piece.len() as u64);
        if received > size {
            *content = Content::Open {
                file,
                bytes: stored,
            };
            return Err(UploadError::TooManyBytes { received, size });
        }
        file.write(piece).await?;
        *content = Content::Open {
            file,
            bytes: received,
        };
        self.slot.activity().since = Instant::now();
        Ok(received)
    }

    /// Completes the upload, which must have all bytes.
    pub(crate) async fn finish(&self) -> Result<Value, UploadError> {
        let mut content = self.lock().await?;
        match mem::replace(&mut *content, Content::Gone) {
            Content::Done(result) => {
                *content = Content::Done(result.clone());
                Ok(result)
            }
            Content::Gone => Err(UploadError::UnknownUpload),
            Content::Open { file, .. } => {
                let result = file.finish().await?;
                *content = Content::Done(result.clone());
                self.slot.activity().is_done = true;
                Ok(result)
            }
        }
    }

    /// Ends the upload and deletes what has arrived.
    pub(crate) async fn cancel(&self) {
        let Ok(mut content) = self.lock().await else {
            return;
        };
        if let Content::Open { file, .. } = mem::replace(&mut *content, Content::Gone) {
            file.discard().await;
        }
    }

    /// Locks the content, if no other connection has claimed the upload.
    async fn lock(&self) -> Result<MutexGuard<'_, Content<F>>, UploadError> {
        let content = self.slot.content.lock().await;
        if self.is_held() {
            Ok(content)
        } else {
            Err(UploadError::Taken)
        }
    }
}

impl<F> Drop for Claim<F> {
    fn drop(&mut self) {
        let mut activity = self.slot.activity();
        if self.is_held() {
            activity.is_attached = false;
            activity.since = Instant::now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future, io, sync::Arc};

    use serde_json::Value;
    use tokio::sync::Semaphore;

    use super::{Claim, Slot};
    use crate::{Announced, StoredFile, UploadError, UploadId};

    /// A file whose bytes are never stored.
    struct Stuck;

    impl StoredFile for Stuck {
        async fn write(&mut self, _bytes: &[u8]) -> io::Result<()> {
            future::pending().await
        }

        async fn finish(self) -> Result<Value, UploadError> {
            Ok(Value::Null)
        }
    }

    #[tokio::test]
    async fn upload_is_gone_if_a_write_is_interrupted() {
        let place = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
        let announced = Announced::new("a", 8);
        let slot = Slot::new(UploadId::random(), announced, (Stuck, 0), place);
        let claim = Claim::new(Arc::new(slot));
        tokio::select! {
            biased;
            stored = claim.write(b"Spam") => panic!("{stored:?}"),
            () = future::ready(()) => {}
        }
        assert_eq!(claim.progress().await, None);
    }
}
