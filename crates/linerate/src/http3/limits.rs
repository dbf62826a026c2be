//! How much one connection may ask for.

use std::{sync::Arc, time::Duration};

use quinn::{IdleTimeout, TransportConfig, VarInt};

/// Limits on one connection of HTTP/3; the defaults are safe.
///
/// ```
/// let mut options = linerate::Options::default();
/// options.http3.streams_max = 1_000;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http3Limits {
    /// How many requests a client may have open at a time. Default: 100.
    pub streams_max: u32,
    /// How many bytes the header fields of a message may have, each counted with 32 more (RFC 9114
    /// §4.2.2). Default: 32 KiB.
    pub header_list_bytes_max: u32,
    /// How many bytes a peer may send on a stream ahead of what the application has taken. A stream
    /// has that much also while others are full. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// How many bytes of all streams may be on their way to the peer, kept until it has acknowledged
    /// them. Default: 2 MiB, which is 160 Mbit/s with a round trip of 100 ms.
    pub send_window_bytes: u32,
    /// How many streams a client may give up at once; with more the connection is ended. After that
    /// it may give up [`resets_per_second`](Self::resets_per_second). Default: 1,000.
    pub resets_max: u32,
    /// How many streams a client may give up in the long run. Default: 33.
    pub resets_per_second: u32,
    /// How long a connection without streams, or without a sign of life, is kept. Default: 60 s.
    pub idle_timeout: Duration,
}

/// Streams of the peer's own: its control stream, two for QPACK, and some that nobody knows.
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
    /// Returns what QUIC is to keep to with a peer that may open so many streams for requests.
    pub(super) fn transport(&self, requests_max: u32) -> Arc<TransportConfig> {
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
            // What is silent and alive stays, whether WebSockets ping or not.
            .keep_alive_interval(Some(self.idle_timeout / 3))
            .datagram_receive_buffer_size(None);
        Arc::new(transport)
    }
}
