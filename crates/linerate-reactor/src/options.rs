//! What a server allows its clients, and what it counts.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use linerate_proto::{
    Config,
    handshake::{HandshakeLimits, OriginPolicy},
};

use crate::DriverKind;

/// How a server behaves; the defaults are safe.
///
/// ```
/// let mut options = linerate_reactor::Options::default();
/// options.config.limits.message_bytes_max = 64 << 20;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// How the server talks to the kernel.
    pub driver: DriverKind,
    /// Limits on messages, keepalive and the budget of the closing handshake.
    pub config: Config,
    /// Limits on the opening handshake, its time among them.
    pub handshake: HandshakeLimits,
    /// The pages that may connect. Default: those of the same origin.
    pub origins: OriginPolicy,
    /// Connections at once over all workers; more are refused with 503. Default: 100,000.
    pub connections_max: usize,
    /// How many bytes may wait for one connection's socket. At the limit its input is not read until
    /// all have been written, and publications are not queued for it. One message more may be
    /// accepted on top, whatever its size. Default: 64 KiB.
    pub backlog_bytes_max: usize,
    /// How long the peer may take no byte of what waits for it before the connection is dropped.
    /// Default: 30 s.
    pub write_timeout: Duration,
    /// Topics that one connection may subscribe to. Default: 128.
    pub subscriptions_max: usize,
    /// The longest name of a topic, in bytes. Default: 255.
    pub topic_bytes_max: usize,
    /// How many bytes of publications may wait for one worker from the others; further ones are
    /// dropped and counted. Default: 4 MiB.
    pub mailbox_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            driver: DriverKind::default(),
            config: Config::default(),
            handshake: HandshakeLimits::default(),
            origins: OriginPolicy::default(),
            connections_max: 100_000,
            backlog_bytes_max: 64 << 10,
            write_timeout: Duration::from_secs(30),
            subscriptions_max: 128,
            topic_bytes_max: 255,
            mailbox_bytes_max: 4 << 20,
        }
    }
}

/// What a server has counted, over all workers.
#[derive(Debug, Default)]
pub struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) publications_dropped: AtomicU64,
}

impl Counters {
    /// Returns how many connections there are, those in the opening handshake included, those that
    /// are being refused not.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns how many publications were not queued: one for each subscriber whose backlog was at
    /// its limit, and one for each worker whose mailbox was.
    pub fn publications_dropped(&self) -> u64 {
        self.publications_dropped.load(Ordering::Relaxed)
    }
}
