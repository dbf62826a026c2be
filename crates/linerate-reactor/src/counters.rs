//! The counters of a server.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// What a server or a connector has counted, over all workers.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) dropped_between_workers: Count,
    pub(crate) dropped_newest: Count,
    pub(crate) dropped_oldest: Count,
    pub(crate) messages_dropped: Count,
    pub(crate) subscribers_closed: Count,
}

impl Counters {
    /// Returns the number of connections. This includes those that are being opened, but not those
    /// that are being refused.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns how many publications were dropped: one for each subscriber or worker that did not
    /// receive it. This is the sum of the three counts that follow.
    pub fn publications_dropped(&self) -> u64 {
        self.publications_dropped_newest()
            + self.publications_dropped_oldest()
            + self.publications_dropped_between_workers()
    }

    /// Returns how many publications were not queued, one for each subscriber; see
    /// [`Overflow::DropNewest`](crate::Overflow::DropNewest).
    pub fn publications_dropped_newest(&self) -> u64 {
        self.dropped_newest.read()
    }

    /// Returns how many publications were removed from a backlog, one for each subscriber; see
    /// [`Overflow::DropOldest`](crate::Overflow::DropOldest).
    pub fn publications_dropped_oldest(&self) -> u64 {
        self.dropped_oldest.read()
    }

    /// Returns how many publications did not reach a worker, one for each worker; see
    /// [`Options::mailbox_bytes_max`](crate::Options::mailbox_bytes_max).
    pub fn publications_dropped_between_workers(&self) -> u64 {
        self.dropped_between_workers.read()
    }

    /// Returns how many messages for other connections
    /// ([`Remote::send`](crate::Remote::send), [`Context::to`](crate::Context::to)) were dropped,
    /// because the connection had ended, was closing, or was sending a message in pieces when it
    /// was their turn.
    pub fn messages_dropped(&self) -> u64 {
        self.messages_dropped.read()
    }

    /// Returns how many subscribers were closed because they did not keep up; see
    /// [`Overflow::Close`](crate::Overflow::Close).
    pub fn subscribers_closed(&self) -> u64 {
        self.subscribers_closed.read()
    }
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, number: u64) {
        if number > 0 {
            self.0.fetch_add(number, Ordering::Relaxed);
        }
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
