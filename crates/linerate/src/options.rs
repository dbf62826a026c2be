//! The settings of a connection, shared by client and server.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::Deflate;
use linerate_proto::{Config, handshake::HandshakeLimits};

use crate::{counters::Counters, memory::Accounts};

/// The options, and the part of them that engines share.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) options: Arc<Options>,
    pub(crate) config: Arc<Config>,
    /// The configuration for messages in chunks, which need no limit to bound memory.
    pub(crate) streaming: Arc<Config>,
}

impl Default for Settings {
    fn default() -> Self {
        Options::default().into()
    }
}

impl From<Options> for Settings {
    fn from(options: Options) -> Self {
        let config = options.config;
        let mut streaming = config;
        streaming.limits.message_bytes_max = u64::MAX;
        streaming.limits.fragments_max = u32::MAX;
        Self {
            options: Arc::new(options),
            config: Arc::new(config),
            streaming: Arc::new(streaming),
        }
    }
}

/// The settings of a connection; the defaults are safe.
///
/// ```
/// let mut options = linerate::Options::default();
/// options.config.limits.message_bytes_max = 64 << 20;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Limits on messages, the keepalive settings and the timeout of the closing handshake.
    pub config: Config,
    /// Limits on the head of the opening handshake.
    pub handshake: HandshakeLimits,
    /// How long the opening handshake may take. On a server, this includes TLS; a client limits the
    /// steps before the handshake with [`Timeouts`](crate::dial::Timeouts). Default: 10 s.
    pub handshake_timeout: Duration,
    /// How many bytes of the body a client keeps if a server refuses to open a WebSocket. The body
    /// is part of the [error](crate::handshake::Response); it may take one second of the time for
    /// the handshake. 0 discards it. Default: 4 KiB, which is enough for an explanation.
    pub response_body_bytes_max: usize,
    /// How many bytes may be queued for the socket before a send has to wait. One more message may
    /// be accepted beyond this limit, whatever its size. Default: 64 KiB.
    pub send_queue_bytes_max: usize,
    /// How many bytes of messages may be queued while the application does not receive. Beyond this
    /// limit, the connection stops reading, and TCP slows the peer down. Default: 64 KiB.
    pub recv_queue_bytes_max: usize,
    /// Limits on an HTTP/2 connection, where each WebSocket is a stream.
    #[cfg(feature = "http2")]
    pub http2: crate::Http2Limits,
    /// Limits on an HTTP/3 connection.
    #[cfg(feature = "http3")]
    pub http3: crate::Http3Limits,
    /// How messages are compressed if the peer supports it; `None` disables compression. Default:
    /// enabled, with windows of 4 KiB in each direction and without a compressor per connection;
    /// see [`Deflate`].
    ///
    /// Compression allows an observer who sees the lengths of messages to guess their content. Send
    /// secrets with [`send_uncompressed`](crate::WebSocket::send_uncompressed).
    #[cfg(feature = "deflate")]
    pub deflate: Option<Deflate>,
    /// The counters to update; `None` disables counting.
    pub counters: Option<Arc<Counters>>,
    /// The accounts to which the memory of connections is charged. Default: memory is not counted.
    pub accounts: Accounts,
}

impl Options {
    /// Disables compression, which is required for connections that are going to be
    /// [relayed](crate::relay::Relay).
    #[cfg_attr(
        not(feature = "deflate"),
        expect(unused_mut, reason = "there is no compression to disable")
    )]
    pub fn without_compression(mut self) -> Self {
        #[cfg(feature = "deflate")]
        {
            self.deflate = None;
        }
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Config::default(),
            handshake: HandshakeLimits::default(),
            handshake_timeout: Duration::from_secs(10),
            response_body_bytes_max: 4 << 10,
            send_queue_bytes_max: 64 << 10,
            recv_queue_bytes_max: 64 << 10,
            #[cfg(feature = "http2")]
            http2: crate::Http2Limits::default(),
            #[cfg(feature = "http3")]
            http3: crate::Http3Limits::default(),
            #[cfg(feature = "deflate")]
            deflate: Some(Deflate::default()),
            counters: None,
            accounts: Accounts::default(),
        }
    }
}
