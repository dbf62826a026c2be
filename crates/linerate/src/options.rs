//! The settings of a connection, shared by client and server.

use std::{sync::Arc, time::Duration};

#[cfg(feature = "deflate")]
use linerate_proto::deflate::Deflate;
use linerate_proto::{Config, handshake::HandshakeLimits};

use crate::{counters::Counters, memory::Accounts};

/// The options, and what engines share of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) options: Arc<Options>,
    pub(crate) config: Arc<Config>,
}

impl From<Options> for Settings {
    fn from(options: Options) -> Self {
        let config = Arc::new(options.config);
        Self {
            options: Arc::new(options),
            config,
        }
    }
}

/// How a connection behaves; the defaults are safe.
///
/// ```
/// let mut options = linerate::Options::default();
/// options.config.limits.message_bytes_max = 64 << 20;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Limits on messages, keepalive and the budget of the closing handshake.
    pub config: Config,
    /// Limits on the head of the opening handshake.
    pub handshake: HandshakeLimits,
    /// How long the opening handshake may take, on a server TLS included; for what a client does
    /// before it there are [`Timeouts`](crate::dial::Timeouts). Default: 10 s.
    pub handshake_timeout: Duration,
    /// How many bytes may wait for the socket before a send waits too. One message more may be
    /// accepted on top, whatever its size. Default: 64 KiB.
    pub send_queue_bytes_max: usize,
    /// How many bytes of messages may wait for the application while it does not receive; then
    /// reading stops, and the peer is slowed by TCP. Default: 64 KiB.
    pub recv_queue_bytes_max: usize,
    /// Limits on a connection of HTTP/2, where WebSockets are streams.
    #[cfg(feature = "http2")]
    pub http2: crate::Http2Limits,
    /// Limits on a connection of HTTP/3.
    #[cfg(feature = "http3")]
    pub http3: crate::Http3Limits,
    /// Whether messages are compressed where the peer can do that, and how; `None` never does. Default:
    /// yes, with windows of 4 KiB each way and no compressor of its own, see
    /// [`Deflate`].
    ///
    /// Compression lets those who see the length of messages guess at what is in them. What is secret
    /// goes by [`send_uncompressed`](crate::WebSocket::send_uncompressed).
    #[cfg(feature = "deflate")]
    pub deflate: Option<Deflate>,
    /// Where to count; `None` does not count.
    pub counters: Option<Arc<Counters>>,
    /// Where the memory of connections is counted. Default: nowhere.
    pub accounts: Accounts,
}

impl Options {
    /// Compresses no message, as it must be with connections that are to be
    /// [relayed](crate::Relay).
    #[cfg_attr(
        not(feature = "deflate"),
        expect(unused_mut, reason = "there is nothing to switch off")
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
