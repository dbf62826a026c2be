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

    /// Counts a connection that this library does not serve, until
    /// [`remove_connection`](Self::remove_connection) is called.
    pub fn add_connection(&self) {
        add(&self.connections, 1);
        add(&self.connections_total, 1);
    }

    /// Removes a connection that was [added](Self::add_connection).
    pub fn remove_connection(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Adds the traffic of connections that this library does not serve.
    pub fn add_traffic(&self, traffic: &Traffic) {
        add(&self.bytes_received, traffic.bytes_received);
        add(&self.bytes_sent, traffic.bytes_sent);
        add(&self.messages_received, traffic.messages_received);
        add(&self.messages_sent, traffic.messages_sent);
    }
}

/// Traffic of connections that are not those of this library, to be added to [`Counters`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "there is one field for each counter of traffic"
)]
pub struct Traffic {
    /// The number of bytes read after the opening handshake.
    pub bytes_received: u64,
    /// The number of bytes written after the opening handshake.
    pub bytes_sent: u64,
    /// The number of messages received completely.
    pub messages_received: u64,
    /// The number of messages accepted for sending.
    pub messages_sent: u64,
}

/// Adds `count` to a counter.
pub(crate) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}
