//! What a source has done, for metrics and health checks.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How often refused publications are logged.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a source.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum SourceState {
    /// It connects for the first time.
    #[default]
    Connecting,
    /// It cannot read; the text is the reason.
    Failed(String),
    /// It reads.
    Reading,
    /// Another node reads.
    Standby,
}

/// The counters of a source.
#[derive(Debug, Default)]
pub struct Status {
    state: Mutex<SourceState>,
    /// When a refused publication was last logged.
    logged: Mutex<Option<Instant>>,
    published: AtomicU64,
    repeated: AtomicU64,
    refused: AtomicU64,
    connections: AtomicU64,
    gaps: AtomicU64,
    lag_bytes: AtomicU64,
    lag_records: AtomicU64,
}

impl Status {
    /// Returns the state.
    pub fn state(&self) -> SourceState {
        self.lock().clone()
    }

    /// Returns how many publications the broker has accepted.
    pub fn published(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Returns how many publications were skipped because they had been published before.
    pub fn repeated(&self) -> u64 {
        self.repeated.load(Ordering::Relaxed)
    }

    /// Returns how many publications were skipped because they were not accepted.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns how often the source began to read.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns how many gaps were reported.
    pub fn gaps(&self) -> u64 {
        self.gaps.load(Ordering::Relaxed)
    }

    /// Returns how many bytes of the log the server had written after the confirmed position when
    /// this was last measured.
    pub fn lag_bytes(&self) -> u64 {
        self.lag_bytes.load(Ordering::Relaxed)
    }

    /// Returns how many records the server had written that were not published when this was last
    /// measured.
    pub fn lag_records(&self) -> u64 {
        self.lag_records.load(Ordering::Relaxed)
    }

    /// Sets how many bytes of the log the server has written after the confirmed position.
    pub fn set_lag_bytes(&self, bytes: u64) {
        self.lag_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets how many records the server has written that are not published.
    pub fn set_lag_records(&self, records: u64) {
        self.lag_records.store(records, Ordering::Relaxed);
    }

    /// Counts a publication that the broker has accepted.
    pub fn note_published(&self) {
        count(&self.published);
    }

    /// Counts a publication that is skipped because it was published before.
    pub fn note_repeated(&self) {
        count(&self.repeated);
    }

    /// Counts a gap that is reported.
    pub fn note_gap(&self) {
        count(&self.gaps);
    }

    /// Counts that the source begins to read, which is its state from now on.
    pub fn note_reading(&self, source: &str) {
        count(&self.connections);
        self.enter(source, SourceState::Reading);
    }

    /// Sets the state, and logs it if it has changed.
    pub fn enter(&self, source: &str, state: SourceState) {
        let previous = std::mem::replace(&mut *self.lock(), state.clone());
        if previous == state {
            return;
        }
        match state {
            SourceState::Failed(reason) => {
                tracing::error!(source, %reason, "source cannot read; trying again");
            }
            SourceState::Reading => tracing::info!(source, "source reads"),
            _ => tracing::info!(source, "another node reads the source"),
        }
    }

    /// Counts a publication that is skipped. Returns the number of all that were, if it is to be
    /// logged: once per second.
    pub fn note_refused(&self) -> Option<u64> {
        count(&self.refused);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.is_none_or(|at: Instant| at.elapsed() >= LOG_INTERVAL);
        is_due.then(|| {
            *logged = Some(Instant::now());
            self.refused()
        })
    }

    fn lock(&self) -> MutexGuard<'_, SourceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
