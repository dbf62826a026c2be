//! How much one connection may ask for.

use std::time::Duration;

/// Limits on one connection of HTTP/2; the defaults are safe.
///
/// ```
/// let mut options = linerate::Options::default();
/// options.http2.streams_max = 1_000;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http2Limits {
    /// How many streams a client may have open at a time. Default: 100.
    pub streams_max: u32,
    /// How many bytes the header fields of a message may have, each counted with 32 more (RFC 9113
    /// §6.5.2). Default: 32 KiB.
    pub header_list_bytes_max: u32,
    /// How many bytes a peer may send on a stream ahead of what the application has taken. A stream
    /// has that much also while others are full. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// How many bytes of a stream may wait for the socket, besides those that wait for room here.
    /// Default: 64 KiB.
    pub send_buffer_bytes_max: usize,
    /// How many streams a client may give up at once; with more the connection is ended. After that
    /// it may give up [`resets_per_second`](Self::resets_per_second). Default: 1,000.
    pub resets_max: u32,
    /// How many streams a client may give up in the long run. Default: 33.
    pub resets_per_second: u32,
    /// How long a connection without streams is kept. Default: 60 s.
    pub idle_timeout: Duration,
}

impl Http2Limits {
    /// Returns how much a peer may send ahead on all streams together.
    ///
    /// As much as on all of them one by one, so that streams that nobody reads never keep others
    /// waiting.
    pub(super) fn connection_window_bytes(&self) -> u32 {
        let bytes = u64::from(self.stream_window_bytes) * u64::from(self.streams_max.max(1));
        u32::try_from(bytes).map_or(WINDOW_BYTES_MAX, |bytes| bytes.min(WINDOW_BYTES_MAX))
    }
}

/// The largest window that there is (RFC 9113 §6.9.1).
const WINDOW_BYTES_MAX: u32 = (1 << 31) - 1;

impl Default for Http2Limits {
    fn default() -> Self {
        Self {
            streams_max: 100,
            header_list_bytes_max: 32 << 10,
            stream_window_bytes: 256 << 10,
            send_buffer_bytes_max: 64 << 10,
            resets_max: 1_000,
            resets_per_second: 33,
            idle_timeout: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_room_for_all_of_its_streams() {
        let mut limits = Http2Limits::default();
        assert_eq!(limits.connection_window_bytes(), 100 * (256 << 10));
        limits.streams_max = u32::MAX;
        assert_eq!(limits.connection_window_bytes(), WINDOW_BYTES_MAX);
        limits.streams_max = 0;
        assert_eq!(limits.connection_window_bytes(), 256 << 10);
    }
}
