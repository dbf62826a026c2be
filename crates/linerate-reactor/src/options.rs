//! What a server allows its clients.

use std::time::Duration;

#[cfg(feature = "deflate")]
use linerate_proto::deflate::Deflate;
use linerate_proto::{
    Config,
    handshake::{HandshakeLimits, OriginPolicy},
};

use crate::{DriverKind, TopicOptions};

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
    /// How messages are compressed where the other side can do it. Default: not at all, since that costs
    /// many times what everything else about a message does.
    #[cfg(feature = "deflate")]
    pub deflate: Option<Deflate>,
    /// The pages that may connect. Default: those of the same origin.
    pub origins: OriginPolicy,
    /// Connections at once over all workers, those that are being opened included; more are refused:
    /// clients with 503, attempts of our own with [`ConnectError::TooMany`](crate::ConnectError).
    /// Default: 100,000.
    pub connections_max: usize,
    /// Attempts to connect that one worker has under way; further ones wait for their turn, and
    /// their time has not begun. Default: 1,024, which is what many servers let wait.
    pub attempts_max: usize,
    /// How many bytes may wait for one connection's socket. At the limit its input is not read until
    /// all have been written, and what happens to publications is up to
    /// [`TopicOptions::overflow`]. One message more may be accepted on top, whatever its size, and
    /// so may the answers to what was read at once, and what was published together. The memory in
    /// use may be up to four times that; so that it is, pieces that can't be put together count 512
    /// bytes each on top. Default: 64 KiB.
    pub backlog_bytes_max: usize,
    /// How many bytes may wait for one connection's socket of what [`To`](crate::To) sends. Beyond,
    /// the connection is dropped, since what feeds it does not heed
    /// [`Handler::congested`](crate::Handler::congested). Default: 16 MiB.
    pub relayed_bytes_max: usize,
    /// How long the peer may take no byte of what waits for it before the connection is dropped.
    /// Default: 30 s.
    pub write_timeout: Duration,
    /// The options of topics for which there are no others; see
    /// [`Builder::topic`](crate::Builder::topic).
    pub topic: TopicOptions,
    /// Topics that one connection may subscribe to. Default: 128.
    pub subscriptions_max: usize,
    /// The longest name of a topic, in bytes. Default: 255.
    pub topic_bytes_max: usize,
    /// How many bytes of publications may wait for one worker from the others; further ones are
    /// dropped and counted. One burst is taken in any case. Default: 4 MiB.
    pub mailbox_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            driver: DriverKind::default(),
            config: Config::default(),
            handshake: HandshakeLimits::default(),
            #[cfg(feature = "deflate")]
            deflate: None,
            origins: OriginPolicy::default(),
            connections_max: 100_000,
            attempts_max: 1_024,
            backlog_bytes_max: 64 << 10,
            relayed_bytes_max: 16 << 20,
            write_timeout: Duration::from_secs(30),
            topic: TopicOptions::default(),
            subscriptions_max: 128,
            topic_bytes_max: 255,
            mailbox_bytes_max: 4 << 20,
        }
    }
}
