//! The limits and options of a server.

use std::time::Duration;

#[cfg(feature = "deflate")]
use linerate_proto::deflate::Deflate;
use linerate_proto::{
    Config,
    handshake::{HandshakeLimits, OriginPolicy},
};

use crate::{driver::kind::DriverKind, topics::options::TopicOptions};

/// The options of a server or a connector; the defaults are safe.
///
/// ```
/// let mut options = linerate_reactor::Options::default();
/// options.config.limits.message_bytes_max = 64 << 20;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The kernel interface that the server uses.
    pub driver: DriverKind,
    /// Limits on messages, keepalive, and the time for the closing handshake.
    pub config: Config,
    /// Limits on the opening handshake, including its duration.
    pub handshake: HandshakeLimits,
    /// Maximum length of the body of a response to a plain HTTP request; a longer one is replaced
    /// by an error with status 500. See [`Server::with_http`](crate::Server::with_http). Default:
    /// 256 KiB.
    pub http_body_bytes_max: usize,
    /// How messages are compressed if the peer supports compression. Default: never, because
    /// compressing a message costs many times as much as all other work on it.
    #[cfg(feature = "deflate")]
    pub deflate: Option<Deflate>,
    /// The web origins that may connect. Default: the same origin.
    pub origins: OriginPolicy,
    /// Maximum number of connections on all workers together, including those that are being
    /// opened. Further clients are refused with 503, and further attempts to connect fail with
    /// [`ConnectError::TooMany`](crate::ConnectError). Default: 100,000.
    pub connections_max: usize,
    /// Maximum number of attempts to connect that one worker has in progress. Further attempts are
    /// queued, and their timeout does not start until it is their turn. Default: 1,024, a common
    /// size of a server's accept queue.
    pub attempts_max: usize,
    /// Maximum size of one connection's backlog, which holds the bytes that wait for its socket. At
    /// the limit, the connection's input is not read until the whole backlog has been written, and
    /// [`TopicOptions::overflow`] decides what happens to publications.
    ///
    /// The limit may be exceeded by one message of any size, by the replies to the input of one
    /// read, and by publications that are delivered together. A backlog may occupy up to four times
    /// its limit in memory. To guarantee that, each piece that cannot be joined with the one before
    /// it counts as an additional 512 bytes. Default: 64 KiB.
    pub backlog_bytes_max: usize,
    /// Maximum number of bytes that may wait for the socket of a connection that
    /// [`ConnectionHandle`](crate::ConnectionHandle) sends to. Beyond that, the connection is
    /// dropped, because whatever feeds it ignores
    /// [`Handler::congested`](crate::Handler::congested). Default: 16 MiB.
    pub relayed_bytes_max: usize,
    /// How long the peer may accept none of the bytes that wait for it before the connection is
    /// dropped. Default: 30 s.
    pub write_timeout: Duration,
    /// How long a message may take from its first to its last byte before
    /// [`Handler::message_late`](crate::Handler::message_late) is called. Without it, a peer can
    /// hold the memory of an unfinished message for as long as it sends 1,000 bytes now and then.
    /// Default: none.
    pub message_timeout: Option<Duration>,
    /// The options of all topics without options of their own; see
    /// [`Server::with_topic`](crate::Server::with_topic).
    pub topic: TopicOptions,
    /// Maximum number of topics that one connection may subscribe to. Default: 128.
    pub subscriptions_max: usize,
    /// Maximum length of a topic name in bytes. Default: 255.
    pub topic_bytes_max: usize,
    /// Maximum number of bytes of publications from other threads that may wait for one worker, and
    /// of messages for single connections ([`Remote::send`](crate::Remote::send)), each. Further
    /// publications are dropped and counted, and further messages are refused, but a single burst
    /// or message is always accepted. Default: 4 MiB.
    pub mailbox_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            driver: DriverKind::default(),
            config: Config::default(),
            handshake: HandshakeLimits::default(),
            http_body_bytes_max: 256 << 10,
            #[cfg(feature = "deflate")]
            deflate: None,
            origins: OriginPolicy::default(),
            connections_max: 100_000,
            attempts_max: 1_024,
            backlog_bytes_max: 64 << 10,
            relayed_bytes_max: 16 << 20,
            write_timeout: Duration::from_secs(30),
            message_timeout: None,
            topic: TopicOptions::default(),
            subscriptions_max: 128,
            topic_bytes_max: 255,
            mailbox_bytes_max: 4 << 20,
        }
    }
}
