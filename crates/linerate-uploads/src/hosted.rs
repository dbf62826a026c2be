//! A session with its memory, as its connection and its viewers share it.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use linerate_logview::session::{Session, SessionId};
use tokio::sync::watch;

use crate::memory::{ALLOCATED_FOR_8, Share, UploadBytes};

/// How a snapshot begins.
const SNAPSHOT: &str = r#"{"type":"snapshot","#;

/// A session that belongs to a connection, or to the sessions that are kept without one. Viewers
/// refer to it weakly, and lock it while they build an answer.
///
/// Lock it on parser threads only: others may hold the lock for some milliseconds. Never lock it
/// while the map of all sessions is locked.
pub(crate) struct SharedSession {
    /// The secret of the client that uploads.
    pub(crate) id: SessionId,
    /// The secret of those who view the upload.
    pub(crate) view: SessionId,
    hosted: Mutex<HostedSession>,
    held: UploadBytes,
    spilled_bytes: AtomicU64,
    /// The latest snapshot that the connection received while there were viewers. Viewers learn
    /// from the end of this channel that the session is gone.
    snapshots: watch::Sender<Arc<str>>,
}

/// A session with its share of the memory.
#[derive(Debug)]
pub(crate) struct HostedSession {
    pub(crate) session: Session,
    pub(crate) share: Share,
    /// The size of the snapshot for viewers.
    published_bytes: usize,
}

impl SharedSession {
    pub(crate) fn new(id: SessionId, view: SessionId, session: Session, share: Share) -> Self {
        Self {
            id,
            view,
            held: share.held().clone(),
            spilled_bytes: AtomicU64::new(0),
            snapshots: watch::Sender::new(Arc::from("")),
            hosted: Mutex::new(HostedSession {
                session,
                share,
                published_bytes: 0,
            }),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, HostedSession> {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counter of the bytes that the upload holds.
    pub(crate) fn held(&self) -> &UploadBytes {
        &self.held
    }

    /// Returns how many bytes the session has in a temporary file.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes.load(Ordering::Relaxed)
    }

    /// Returns a receiver of the snapshots to come.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Arc<str>> {
        self.snapshots.subscribe()
    }

    /// Ends a turn of work: passes the latest snapshot among the replies to viewers, if there are
    /// any, and releases reserved memory that was not needed.
    pub(crate) fn settle(&self, hosted: &mut HostedSession, replies: &[String]) {
        let latest = replies.iter().rfind(|reply| reply.starts_with(SNAPSHOT));
        if let Some(latest) = latest.filter(|_| self.snapshots.receiver_count() > 0) {
            hosted.published_bytes = latest.len();
            self.snapshots.send_replace(Arc::from(latest.as_str()));
        }
        let spilled = hosted.session.spilled_bytes();
        self.spilled_bytes.store(spilled, Ordering::Relaxed);
        hosted.share.set(hosted.held_bytes());
    }
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSession").finish_non_exhaustive()
    }
}

impl HostedSession {
    /// Returns by how many bytes the share must grow before `work` bytes of decompressed input are
    /// parsed.
    pub(crate) fn lacking_bytes(&self, work: usize) -> u64 {
        if !self.session.has_files() {
            return 0;
        }
        let growth = self.session.growth_bytes_max(work) as u64;
        let needed = self.held_bytes().saturating_add(growth);
        needed.saturating_sub(self.share.bytes())
    }

    /// Returns the maximum memory of replies, including the reply to `text` if one is given.
    pub(crate) fn reply_bytes_max(&self, text: Option<&str>) -> u64 {
        match self.session.has_files() {
            true => self.session.reply_bytes_max(text) as u64,
            false => 0,
        }
    }

    fn held_bytes(&self) -> u64 {
        let bytes = self.session.memory_bytes() + self.published_bytes;
        bytes as u64 / 8 * ALLOCATED_FOR_8
    }
}
