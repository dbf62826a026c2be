//! `[compression]`: whether WebSockets are compressed, and how.

use linerate::Deflate;
use serde::Deserialize;

use super::check::Check;

/// Whether WebSockets are compressed for clients that offer it, and how (RFC 7692).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct CompressionOptions {
    /// Whether they are.
    pub enabled: bool,
    /// How hard to try, 1 to 9.
    pub level: u8,
    /// Bytes below which a message is sent as it is.
    pub message_bytes_min: usize,
    /// Whether what a client sends may refer back to what it has sent before.
    pub takeover: bool,
    /// Bytes of windows, and of compressed messages that have arrived in part, of all connections.
    pub total_bytes_max: usize,
}

impl CompressionOptions {
    /// Returns what is negotiated, `None` for nothing.
    ///
    /// What we send never refers back: it is compressed once for all who get it.
    pub(crate) fn deflate(&self) -> Option<Deflate> {
        self.enabled.then(|| Deflate {
            level: self.level,
            message_bytes_min: self.message_bytes_min,
            window_bits: 15,
            takeover: false,
            peer_takeover: self.takeover,
            ..Deflate::default()
        })
    }

    pub(super) fn check(&self, check: &mut Check) {
        check.range("level", self.level, 1..=9);
        check.range("message_bytes_min", self.message_bytes_min, 0..=64 << 20);
        check.range("total_bytes_max", self.total_bytes_max, 0..=1 << 38);
    }
}

impl Default for CompressionOptions {
    fn default() -> Self {
        Self {
            enabled: false,
            level: 4,
            message_bytes_min: 256,
            takeover: false,
            total_bytes_max: 256 << 20,
        }
    }
}
