//! `[compression]`: compression of WebSocket messages.

use linerate::Deflate;
use serde::Deserialize;

use super::check::Check;

/// Compression of WebSocket messages, for clients that offer it (RFC 7692).
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct CompressionOptions {
    /// True if compression is enabled.
    pub enabled: bool,
    /// Compression level, 1 to 9; higher levels compress better and take longer.
    pub level: u8,
    /// Minimum size of a compressed message, in bytes; smaller messages are sent uncompressed.
    pub message_bytes_min: usize,
    /// True if clients may refer back to their earlier messages (context takeover).
    pub takeover: bool,
    /// Maximum memory for windows and for partly received compressed messages, in bytes, for all
    /// connections together.
    pub total_bytes_max: usize,
}

impl CompressionOptions {
    /// Returns the options to negotiate; `None` disables compression.
    ///
    /// With `takeover`, our messages may refer back, but only those that are compressed once for
    /// all recipients that can follow, outside the connection.
    pub(super) fn deflate(&self, takeover: bool) -> Option<Deflate> {
        self.enabled.then(|| {
            let mut deflate = Deflate::default();
            deflate.level = self.level;
            deflate.message_bytes_min = self.message_bytes_min;
            deflate.window_bits = 15;
            deflate.takeover = takeover;
            deflate.external_takeover = true;
            deflate.peer_takeover = self.takeover;
            deflate
        })
    }

    pub(super) fn check(&self, check: &mut Check) {
        check.range("level", self.level, 1..=9);
        check.range("message_bytes_min", self.message_bytes_min, 0..=64 << 20);
        check.range("total_bytes_max", self.total_bytes_max, 0..=1 << 38);
    }
}
