//! The limits of one connection.

use std::time::Duration;

/// How many DATA frames with small payloads may be queued for the tasks of their streams: as many
/// as a connection can read before those tasks run. h2 charges 256 bytes minus the payload for
/// each.
pub(crate) const SMALL_FRAMES_MAX: usize = 80_000;

/// Limits on one HTTP/2 connection. The defaults are safe.
///
/// ```
/// let mut limits = linerate_h2::Http2Limits::default();
/// limits.streams_max = 1_000;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Http2Limits {
    /// Maximum number of streams that a client may have open at a time. Default: 100.
    pub streams_max: u32,
    /// Maximum size of the header fields of a message in bytes, where each field counts 32 bytes
    /// more than its name and value (RFC 9113 §6.5.2). Default: 32 KiB.
    pub header_list_bytes_max: u32,
    /// How many bytes a peer may send on a stream before the application has consumed them. Each
    /// stream has its own allowance, even while others are full. Default: 256 KiB.
    pub stream_window_bytes: u32,
    /// How many bytes of a stream may be queued for the socket. Bytes that wait for room in this
    /// queue are kept in the WebSocket's own buffer and are not included. Default: 64 KiB.
    pub send_buffer_bytes_max: usize,
    /// How many streams a client may reset in a burst. The connection is closed if it resets more.
    /// The allowance then grows by [`resets_per_second`](Self::resets_per_second). Default: 1,000.
    pub resets_max: u32,
    /// How many streams per second a client may reset in the long run. Default: 33.
    pub resets_per_second: u32,
    /// How long a connection without streams is kept open. Default: 60 s.
    pub idle_timeout: Duration,
}

impl Http2Limits {
    /// Returns how many bytes a peer may send on all streams together before they are consumed.
    ///
    /// This is the sum of the windows of all streams, so that streams that are not being read never
    /// block others.
    pub(crate) fn connection_window_bytes(&self) -> u32 {
        let bytes = u64::from(self.stream_window_bytes) * u64::from(self.streams_max.max(1));
        u32::try_from(bytes).map_or(WINDOW_BYTES_MAX, |bytes| bytes.min(WINDOW_BYTES_MAX))
    }
}

/// The largest window that HTTP/2 allows (RFC 9113 §6.9.1).
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
