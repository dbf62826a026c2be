//! One file that is followed: the thread that reads it, and the figures for its viewers.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use linerate_budget::Lease;
use linerate_logview::session::{Followed, Limits};
use tokio::sync::watch;

use super::growing::{GrowingFile, Growth};
use crate::serve::upload::{ALLOCATED_FOR_8, step_back};

/// How often it is looked whether the file has grown.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How much time lies between snapshots at least.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);
/// How many bytes are read and parsed in one go.
const PIECE_BYTES: usize = 256 << 10;
/// How long is waited after a file couldn't be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A file that is followed.
#[derive(Debug)]
pub(in crate::serve) struct Tail {
    name: String,
    log: Mutex<Followed>,
    /// The newest snapshot, as the message that viewers get.
    snapshots: watch::Sender<Arc<str>>,
}

impl Tail {
    /// Begins to read a file on a thread of its own, which ends when nobody has the tail any more.
    ///
    /// What its figures take up is counted in the lease.
    pub(super) fn start(
        name: String,
        path: PathBuf,
        limits: Limits,
        lease: Lease,
    ) -> io::Result<Arc<Self>> {
        let tail = Arc::new(Self {
            name,
            log: Mutex::new(Followed::new(limits)),
            snapshots: watch::Sender::new(Arc::from("")),
        });
        let reader = Reader {
            tail: Arc::downgrade(&tail),
            path: path.clone(),
            file: GrowingFile::new(path),
            buffer: vec![0; PIECE_BYTES],
            has_news: true,
            last_snapshot: None,
            is_well: true,
            lease,
        };
        let thread = thread::Builder::new().name("tail".into());
        thread.spawn(move || reader.run())?;
        Ok(tail)
    }

    pub(in crate::serve) fn name(&self) -> &str {
        &self.name
    }

    /// Returns what the newest snapshot is heard from. It is empty until there is one.
    pub(in crate::serve) fn snapshots(&self) -> watch::Receiver<Arc<str>> {
        self.snapshots.subscribe()
    }

    /// Returns the figures, which are held back from growing meanwhile.
    pub(in crate::serve) fn log(&self) -> MutexGuard<'_, Followed> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader {
    tail: Weak<Tail>,
    path: PathBuf,
    file: GrowingFile,
    buffer: Vec<u8>,
    /// Whether something came after the last snapshot.
    has_news: bool,
    last_snapshot: Option<Instant>,
    /// Whether the file could be read the last time, so that trouble is logged once.
    is_well: bool,
    lease: Lease,
}

impl Reader {
    fn run(mut self) {
        step_back();
        while let Some(tail) = self.tail.upgrade() {
            let pause = self.read(&tail);
            self.publish(&tail);
            drop(tail);
            thread::sleep(pause);
        }
    }

    /// Reads a piece of the file; returns how long to wait before the next one.
    fn read(&mut self, tail: &Tail) -> Duration {
        let growth = match self.file.read(&mut self.buffer) {
            Ok(growth) => growth,
            Err(error) => return self.complain(&error),
        };
        self.is_well = true;
        let taken = match growth {
            Growth::Bytes(read) => tail.log().handle_input(&self.buffer[..read]),
            Growth::Ended => tail.log().handle_eof(),
            Growth::None => return POLL_INTERVAL,
        };
        let bytes = tail.log().memory_bytes() as u64;
        self.lease.set(bytes / 8 * ALLOCATED_FOR_8);
        if let Err(error) = taken {
            tracing::warn!(path = %self.path.display(), %error, "rest of a log is skipped");
        }
        self.has_news = true;
        Duration::ZERO
    }

    fn complain(&mut self, error: &io::Error) -> Duration {
        if std::mem::take(&mut self.is_well) {
            tracing::warn!(path = %self.path.display(), %error, "can't follow a log");
        }
        RETRY_INTERVAL
    }

    /// Shows the figures to those who look, if there are any and something has changed.
    fn publish(&mut self, tail: &Tail) {
        let is_early = |last: Instant| last.elapsed() < SNAPSHOT_INTERVAL;
        if !self.has_news
            || tail.snapshots.receiver_count() == 0
            || self.last_snapshot.is_some_and(is_early)
        {
            return;
        }
        let snapshot = tail.log().snapshot();
        tail.snapshots.send_replace(Arc::from(snapshot));
        self.has_news = false;
        self.last_snapshot = Some(Instant::now());
    }
}
