//! The limits of one connection.

use std::{sync::Arc, time::Duration};

use linerate_http::Resets;
use quinn::{IdleTimeout, TransportConfig, VarInt};
use tokio::time::Instant;

/// Limits on one HTTP/3 connection. The defaults are safe.
///
/// ```
/// let mut limits = linerate_h3::Http3Limits::default();
/// limits.streams_max = 1_000;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http3Limits {
    /// Maximum number of requests that a client may have open at a time. Default: 100.
    pub streams_max: u32,
    /// Maximum size of the header fields of a message in bytes, where each field counts 32 bytes
    /// more than its name and value (RFC 9114 §4.2.2). Default: 32 KiB.
    pub header_list_bytes_max: u32,
    /// How many bytes a peer may send on a stream before the application has consumed them. Each
    /// stream has its own allowance, even while others are full. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// How many bytes of all streams may be in flight to the peer. They are kept until the peer has
    /// acknowledged them. Default: 2 MiB, which allows 160 Mbit/s at a round-trip time of 100 ms.
    pub send_window_bytes: u32,
    /// How many streams a client may reset in a burst. The connection is closed if it resets more.
    /// The allowance then grows by [`resets_per_second`](Self::resets_per_second). Default: 1,000.
    pub resets_max: u32,
    /// How many streams per second a client may reset in the long run. Default: 33.
    pub resets_per_second: u32,
    /// How long a connection without streams, or with a peer that does not respond, is kept open.
    /// Default: 60 s.
    pub idle_timeout: Duration,
}

/// Maximum number of the peer's unidirectional streams: its control stream, two for QPACK, and some
/// of unknown types.
const UNIDIRECTIONAL_STREAMS_MAX: u32 = 8;

impl Default for Http3Limits {
    fn default() -> Self {
        Self {
            streams_max: 100,
            header_list_bytes_max: 32 << 10,
            stream_window_bytes: 256 << 10,
            send_window_bytes: 2 << 20,
            resets_max: 1_000,
            resets_per_second: 33,
            idle_timeout: Duration::from_secs(60),
        }
    }
}

impl Http3Limits {
    /// Returns the limit on streams of unknown types that the peer may open.
    pub(crate) fn ignored(&self) -> Resets {
        Resets::new(Instant::now(), self.resets_max, self.resets_per_second)
    }

    /// Returns the QUIC configuration for a peer that may open `requests_max` request streams.
    pub(crate) fn transport(&self, requests_max: u32) -> Arc<TransportConfig> {
        let window = u64::from(self.stream_window_bytes);
        let streams = u64::from(self.streams_max) + u64::from(UNIDIRECTIONAL_STREAMS_MAX);
        let window_of_all = VarInt::from_u64(window * streams).unwrap_or(VarInt::MAX);
        let idle_timeout = IdleTimeout::try_from(self.idle_timeout).ok();
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(requests_max.into())
            .max_concurrent_uni_streams(UNIDIRECTIONAL_STREAMS_MAX.into())
            .stream_receive_window(self.stream_window_bytes.into())
            .receive_window(window_of_all)
            .send_window(self.send_window_bytes.into())
            .max_idle_timeout(idle_timeout)
            // A silent connection to a live peer is kept, even if its WebSockets send no pings.
            .keep_alive_interval(Some(self.idle_timeout / 3))
            .datagram_receive_buffer_size(None);
        Arc::new(transport)
    }
}
