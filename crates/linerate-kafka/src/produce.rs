//! What producers write, why they do not, and how many records they have written.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Minimum time between two log lines about records that are not stored.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// A record to be written.
#[derive(Clone, Debug)]
pub struct NewRecord<'a> {
    /// The key. Records with the same key are in the same partition, in order.
    pub key: &'a str,
    /// The value.
    pub value: &'a [u8],
    /// The names of headers, and their values.
    pub headers: &'a [(String, Vec<u8>)],
}

/// Why a record is not stored.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProduceError {
    /// The memory budget is exhausted.
    #[error("no memory is left for records that wait for Kafka")]
    Memory,
    /// Kafka refused the record, or did not answer in time. In the latter case, it may have stored
    /// it.
    #[error("Kafka has not stored the record: {0}")]
    NotStored(String),
    /// Too many records are not stored yet.
    #[error("{records} records wait for Kafka; at most {records_max} are allowed")]
    Records {
        /// The records that wait.
        records: usize,
        /// The limit.
        records_max: usize,
    },
    /// The records that are not stored yet need too much memory.
    #[error("records of {bytes} bytes wait for Kafka; at most {bytes_max} are allowed")]
    Bytes {
        /// Their memory with this record, in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The value is too large.
    #[error("payload has {bytes} bytes; at most {bytes_max} are allowed in Kafka")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// What a producer has done, for metrics.
#[derive(Debug, Default)]
pub struct ProducerStatus {
    stored: AtomicU64,
    refused: AtomicU64,
    dropped: AtomicU64,
    waiting: AtomicU64,
    waiting_bytes: AtomicU64,
    /// When records that are not stored were last logged.
    logged: Mutex<Option<Instant>>,
}

impl ProducerStatus {
    /// Returns how many records Kafka has stored.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// Returns how many records were not stored, of which the caller was told.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns how many records were not stored, of which no caller was told.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Returns how many records wait until they are stored.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the memory of these records, in bytes.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Relaxed)
    }

    /// Counts a record that is not stored. Returns whether it is to be logged: the first one, and
    /// at most one in ten seconds.
    pub(crate) fn note_failed(&self, is_told: bool) -> bool {
        let counter = if is_told {
            &self.refused
        } else {
            &self.dropped
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = logged.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
        if is_due {
            *logged = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(feature = "client")]
impl ProducerStatus {
    pub(crate) fn note_stored(&self) {
        self.stored.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_waiting(&self, bytes: usize) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn remove_waiting(&self, records: usize, bytes: usize) {
        self.waiting.fetch_sub(records as u64, Ordering::Relaxed);
        self.waiting_bytes
            .fetch_sub(bytes as u64, Ordering::Relaxed);
    }
}
