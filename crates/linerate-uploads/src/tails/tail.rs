//! A followed file: the thread that reads it, and the statistics for its viewers.

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
use crate::{memory::ALLOCATED_FOR_8, parsing::lower_priority};

/// How often to check whether the file has grown.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Minimum time between two snapshots.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum number of bytes that are read and parsed at once.
const PIECE_BYTES: usize = 256 << 10;
/// How long to wait after a failed read before trying again.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// A followed file.
#[derive(Debug)]
pub(crate) struct Tail {
    name: String,
    log: Mutex<Followed>,
    /// The latest snapshot, as the message that viewers receive.
    snapshots: watch::Sender<Arc<str>>,
}

impl Tail {
    /// Starts to read a file on its own thread, which ends when the last reference to the tail is
    /// dropped.
    ///
    /// The memory of its statistics is charged to `lease`.
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

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a receiver of the latest snapshot, which is empty until there is one.
    pub(crate) fn snapshots(&self) -> watch::Receiver<Arc<str>> {
        self.snapshots.subscribe()
    }

    /// Locks and returns the statistics. They are not updated while the guard is held.
    pub(crate) fn log(&self) -> MutexGuard<'_, Followed> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Reader {
    tail: Weak<Tail>,
    path: PathBuf,
    file: GrowingFile,
    buffer: Vec<u8>,
    /// True if data has arrived since the last snapshot.
    has_news: bool,
    last_snapshot: Option<Instant>,
    /// True if the last read succeeded. It is used to log only the first of several failures in a
    /// row.
    is_well: bool,
    lease: Lease,
}

impl Reader {
    fn run(mut self) {
        lower_priority();
        while let Some(tail) = self.tail.upgrade() {
            let pause = self.read(&tail);
            self.publish(&tail);
            drop(tail);
            thread::sleep(pause);
        }
    }

    /// Reads a piece of the file; returns how long to wait before the next one.
    fn read(&mut self, tail: &Tail) -> Duration {
        let growth = match self.file.read(&mut self.buffer, Instant::now()) {
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
            tracing::warn!(path = %self.path.display(), %error, "skipping the rest of a log");
        }
        self.has_news = true;
        Duration::ZERO
    }

    /// Logs an error, and returns how long to wait before another attempt.
    fn complain(&mut self, error: &io::Error) -> Duration {
        let path = self.path.display();
        let is_first = std::mem::take(&mut self.is_well);
        if error.kind() == io::ErrorKind::NotFound {
            if is_first {
                tracing::warn!(%path, "waiting for a log that does not exist");
            }
            return POLL_INTERVAL;
        }
        if is_first {
            tracing::warn!(%path, %error, "cannot follow a log");
        }
        RETRY_INTERVAL
    }

    /// Publishes a snapshot if something has changed, there are viewers, and the last snapshot is
    /// old enough.
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
