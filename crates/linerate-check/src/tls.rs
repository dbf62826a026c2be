//! TLS connections that are cut into small records and segments, and alerts instead of a handshake
//! (RFC 8446).

mod forge;
mod shaped;
pub(crate) mod tls12;

pub(crate) use shaped::{Segments, ShapedStream};

/// How a TLS connection is cut into pieces, how it ends, and what it negotiates.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Shape {
    /// The maximum size of a TCP segment in bytes, from the start of the connection.
    pub segment_bytes_max: Option<usize>,
    /// The maximum size of a record in bytes, including header and protection, from the start of
    /// the connection. At least 32.
    pub record_bytes_max: Option<usize>,
    /// The maximum number of WebSocket bytes in a record.
    pub write_bytes_max: Option<usize>,
    /// How our direction ends.
    pub ending: Ending,
    /// True for TLS 1.2.
    pub is_tls12: bool,
    /// The protocols to offer by ALPN (RFC 7301).
    pub protocols: &'static [&'static [u8]],
}

/// How our direction ends.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Ending {
    /// With these unprotected bytes; then we wait for the peer to end the connection.
    Bare(&'static [u8]),
    /// With `close_notify`.
    #[default]
    CloseNotify,
    /// With a record of this type and content, protected like all others; then we wait for the peer
    /// to end the connection.
    Record(u8, &'static [u8]),
    /// Without `close_notify` (RFC 8446 §6.1).
    Truncated,
}

/// Record types (RFC 8446 §5.1).
const ALERT: u8 = 21;
pub(crate) const HANDSHAKE: u8 = 22;

/// Returns the code of the alert, if the first record is one.
pub(crate) fn alert(arrived: &[u8]) -> Option<u8> {
    match arrived {
        [ALERT, 3, _, 0, 2, _, alert, ..] => Some(*alert),
        _ => None,
    }
}
