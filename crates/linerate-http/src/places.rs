//! The open streams of an HTTP/2 or HTTP/3 connection, and what they report to it.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU32, Ordering},
};

use tokio::{sync::Notify, time::Instant};

use crate::Resets;

/// Counts the streams that are open and those that were reset.
#[derive(Debug)]
pub struct Places {
    taken: AtomicU32,
    /// The resets so far, and whether there were too many.
    resets: Mutex<(Resets, bool)>,
    changed: Notify,
}

impl Places {
    /// Creates the places of a connection whose client may reset `resets_max` streams in a burst
    /// and `resets_per_second` on average.
    pub fn new(resets_max: u32, resets_per_second: u32) -> Arc<Self> {
        let resets = Resets::new(Instant::now(), resets_max, resets_per_second);
        Arc::new(Self {
            taken: AtomicU32::new(0),
            resets: Mutex::new((resets, false)),
            changed: Notify::new(),
        })
    }

    /// Takes a place for a stream that was opened.
    pub fn take(self: &Arc<Self>) -> Place {
        self.taken.fetch_add(1, Ordering::Relaxed);
        Place(self.clone())
    }

    /// Waits until a stream has ended.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns whether the client has reset more streams than allowed.
    pub fn is_calm_wanted(&self) -> bool {
        self.resets.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    /// Returns whether no stream is open.
    pub fn is_idle(&self) -> bool {
        self.taken.load(Ordering::Relaxed) == 0
    }
}

/// The place of a stream on its connection; released on drop.
#[derive(Debug)]
pub struct Place(Arc<Places>);

impl Place {
    /// Records that the stream was reset before its end.
    pub fn note_reset(&mut self) {
        let resets = &self.0.resets;
        let mut resets = resets.lock().unwrap_or_else(PoisonError::into_inner);
        resets.1 |= resets.0.count(Instant::now());
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
        self.0.changed.notify_one();
    }
}
