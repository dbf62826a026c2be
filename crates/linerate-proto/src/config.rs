//! What an engine allows and how long it waits.

use core::time::Duration;

/// Bounds on what a peer may send. All are on by default.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The largest message, in bytes over all its fragments, inflated if it is compressed. Default: 1 MiB, which holds any
    /// reasonable JSON document and lets 1,000 hostile peers pin at most 1 GiB.
    pub message_bytes_max: u64,
    /// The largest payload of one frame, in bytes. Default: `u64::MAX`, so that the limit on the
    /// message decides.
    pub frame_bytes_max: u64,
    /// The largest number of frames in one message. Default: 131,072; senders that stream
    /// in fragments of 64 bytes reach 65,536 in a message of 4 MiB.
    pub fragments_max: u32,
}

impl Limits {
    /// Returns whether a message of one frame with so many bytes is within all limits.
    #[inline]
    pub(crate) const fn allow_message_of_one_frame(&self, bytes: u64) -> bool {
        bytes <= self.message_bytes_max && bytes <= self.frame_bytes_max && self.fragments_max > 0
    }

    /// Returns the most bytes that the frames of a message may have together.
    ///
    /// What can't be compressed grows: by an eighth, if each of its bytes gets nine bits of the fixed
    /// code (RFC 1951 §3.2.6).
    #[inline]
    pub(crate) const fn message_bytes_on_wire_max(&self, compressed: bool) -> u64 {
        if compressed {
            let growth = self.message_bytes_max / 8 + 64;
            self.message_bytes_max.saturating_add(growth)
        } else {
            self.message_bytes_max
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 1 << 20,
            frame_bytes_max: u64::MAX,
            fragments_max: 131_072,
        }
    }
}

/// The settings of an [`Engine`](crate::Engine).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Config {
    /// Bounds on what the peer may send.
    pub limits: Limits,
    /// How long the peer may be silent before it is sent a Ping; `None` or zero sends none. Default:
    /// 20 s, below the 30 to 60 s after which common proxies drop an idle connection.
    pub ping_interval: Option<Duration>,
    /// How long after such a Ping anything at all must have arrived; in the middle of a frame 1,000 bytes,
    /// so that nobody holds a connection by single bytes. Default: 20 s.
    pub ping_timeout: Duration,
    /// The budget of the whole closing handshake, from our Close frame to the end of the
    /// connection. Default: 5 s.
    pub close_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            ping_interval: Some(Duration::from_secs(20)),
            ping_timeout: Duration::from_secs(20),
            close_timeout: Duration::from_secs(5),
        }
    }
}
