//! Traffic counters, for a status page or a metrics endpoint.

use std::sync::atomic::{AtomicU64, Ordering};

/// Totals over all connections that share these counters; see
/// [`Options::counters`](crate::Options::counters).
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) bytes_received: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) messages_received: AtomicU64,
    pub(crate) messages_sent: AtomicU64,
}

impl Counters {
    /// Returns the number of bytes read from sockets after the opening handshake, including
    /// framing.
    pub fn bytes_received(&self) -> u64 {
        self.bytes_received.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes written to sockets after the opening handshake, including
    /// framing.
    pub fn bytes_sent(&self) -> u64 {
        self.bytes_sent.load(Ordering::Relaxed)
    }

    /// Returns the number of connections that are open now.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of connections opened so far.
    pub fn connections_total(&self) -> u64 {
        self.connections_total.load(Ordering::Relaxed)
    }

    /// Returns the number of messages received completely.
    pub fn messages_received(&self) -> u64 {
        self.messages_received.load(Ordering::Relaxed)
    }

    /// Returns the number of messages accepted for sending.
    pub fn messages_sent(&self) -> u64 {
        self.messages_sent.load(Ordering::Relaxed)
    }
}

/// Adds `count` to a counter.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
