//! Limits and timeouts of an engine.

use core::time::Duration;

/// Limits on what a peer may send. All of them have a default.
///
/// ```
/// use linerate_proto::Limits;
///
/// let mut limits = Limits::default();
/// limits.message_bytes_max = 16 << 20;
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest message, in bytes: the sum of all its fragments, after decompression. Default:
    /// 1 MiB, which fits any reasonable JSON document and lets 1,000 hostile peers pin at most
    /// 1 GiB.
    pub message_bytes_max: u64,
    /// The largest payload of one frame, in bytes. Default: `u64::MAX`, so that only the limit on
    /// the message applies.
    pub frame_bytes_max: u64,
    /// The largest number of frames in one message. Default: 131,072. For comparison, a message of
    /// 4 MiB that is streamed in fragments of 64 bytes has 65,536 frames.
    pub fragments_max: u32,
}

impl Limits {
    /// Returns whether an unfragmented message of `bytes` bytes is within all limits.
    #[inline]
    pub(crate) const fn allow_message_of_one_frame(&self, bytes: u64) -> bool {
        bytes <= self.message_bytes_max && bytes <= self.frame_bytes_max && self.fragments_max > 0
    }

    /// Returns the largest total payload, in bytes, that the frames of a message may have.
    ///
    /// Incompressible data grows when it is compressed: by an eighth if each byte is coded with
    /// nine bits of the fixed code (RFC 1951 §3.2.6).
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
#[non_exhaustive]
pub struct Config {
    /// Limits on what the peer may send.
    pub limits: Limits,
    /// How long the peer may be silent before the engine sends it a Ping; `None` or zero disables
    /// keepalive Pings. Default: 20 s, because common proxies drop an idle connection after 30 to
    /// 60 s.
    pub ping_interval: Option<Duration>,
    /// How long the engine waits for input after a keepalive Ping before it fails the connection.
    /// Any input counts, but in the middle of a frame it takes 1,000 bytes, so that a peer cannot
    /// hold a connection open by sending single bytes. Default: 20 s.
    pub ping_timeout: Duration,
    /// How long the whole closing handshake may take, from our Close frame to the end of the
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
