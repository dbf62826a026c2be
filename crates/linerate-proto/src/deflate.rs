//! Compressed messages: permessage-deflate (RFC 7692).
//!
//! [`Deflate`] says what an endpoint is willing to do; the opening handshake makes an
//! [`Agreement`] of it ([`Acceptance::with_deflate`](crate::handshake::Acceptance::with_deflate),
//! [`ClientHandshake::with_deflate`](crate::handshake::ClientHandshake::with_deflate)), and
//! [`Engine::with_deflate`](crate::Engine::with_deflate) keeps to it.
//!
//! A connection keeps no compressor, only what the next message may refer back to: the last
//! 2^`window_bits` bytes of each direction, and nothing before the first message. Compressors and
//! decompressors come from a [`Pool`] and are told these bytes. All windows of a process are
//! counted by a [`Budget`].
//!
//! Streams are compressed by zlib-rs; messages of up to 16 KiB that refer to no others by an encoder
//! of our own (`short`), since zlib clears 128 KiB for each of them.

mod agreement;
mod budget;
mod codec;
mod compress;
mod compressor;
mod decompress;
mod parameters;
mod pool;
mod prepared;
mod short;
mod window;
mod worth;

pub use agreement::{Agreement, Context};
pub use budget::Budget;
pub use compressor::Compressor;
pub use decompress::{Decompressor, Output};
#[cfg(feature = "std")]
pub use pool::ThreadPool;
pub use pool::{Pool, Stock, Unpooled, Wanted};
pub use prepared::Prepared;

pub(crate) use agreement::{choose, judge, offers};
pub(crate) use codec::{Codec, Part, Round, Spent};

/// The name of the extension (RFC 7692 §7).
pub(crate) const NAME: &str = "permessage-deflate";

/// What an endpoint is willing to do; the same for both roles.
///
/// Compression tells who can see the lengths of messages something about their content: never let
/// what an attacker can choose and what is secret share a context (RFC 7692 §8). Send secrets
/// uncompressed ([`Engine::send_uncompressed`](crate::Engine::send_uncompressed)).
///
/// ```
/// use linerate_proto::deflate::Deflate;
///
/// let frugal = Deflate { takeover: false, peer_takeover: false, ..Deflate::default() };
/// assert_eq!(frugal.window_bits, 12);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Deflate {
    /// How hard to try, 1 to 9. Default: 4. On JSON messages of 250 bytes to 3 KB, levels 3 to 6 differ by
    /// some percent in time and bytes, and with 2, messages are up to a tenth longer. With takeover, 1
    /// makes no codes of its own for a message, takes a tenth to a third of the time, and messages are
    /// 6 to 50 % longer; without, it takes no less than 2.
    pub level: u8,
    /// Shorter messages are sent as they are, in bytes. Default: 64; below it even a good
    /// compressor saves less than a header.
    pub message_bytes_min: usize,
    /// The window that our messages may refer back to: 2^`window_bits` bytes, 8 to 15; the peer may
    /// ask for less. Default: 12 (4 KiB), which holds several messages of some hundred bytes.
    pub window_bits: u8,
    /// The window that the peer's messages may refer back to, 8 to 15. A client that can't keep to
    /// less than 15 bits then has to begin each message anew. Default: 12.
    pub peer_window_bits: u8,
    /// Whether our messages may refer back to earlier ones. Default: `true`.
    pub takeover: bool,
    /// Whether the peer's messages may refer back to earlier ones. Default: `true`.
    pub peer_takeover: bool,
    /// How many times as long as what has arrived of it an inflated message may be, from 64 KiB on;
    /// `None` leaves it to [`Limits::message_bytes_max`](crate::Limits::message_bytes_max). Default:
    /// `None`, because an honest message of zeros shrinks to a thousandth, as a hostile one does.
    pub ratio_max: Option<u32>,
    /// What counts and bounds the memory of windows. Default: [`Budget::global`].
    pub budget: &'static Budget,
}

impl Default for Deflate {
    fn default() -> Self {
        Self {
            level: 4,
            message_bytes_min: 64,
            window_bits: 12,
            peer_window_bits: 12,
            takeover: true,
            peer_takeover: true,
            ratio_max: None,
            budget: Budget::global(),
        }
    }
}
