//! Compressed messages: permessage-deflate (RFC 7692).
//!
//! [`Deflate`] holds the settings of an endpoint. The opening handshake negotiates an [`Agreement`]
//! from them ([`Acceptance::with_deflate`](crate::handshake::Acceptance::with_deflate),
//! [`ClientHandshake::with_deflate`](crate::handshake::ClientHandshake::with_deflate)), which
//! [`Engine::with_deflate`](crate::Engine::with_deflate) applies.
//!
//! A connection does not hold a compressor, only the bytes that the next message may refer back to:
//! the last 2^`window_bits` bytes of each direction. It allocates nothing before the first message.
//! Compressors and decompressors come from a [`Pool`] and are loaded with these bytes. A [`Budget`]
//! counts all windows of a process.
//!
//! Messages that refer back to earlier ones, and messages of more than 16 KiB, are compressed by
//! zlib-rs. Shorter messages that do not refer back use our own encoder (`short`), because zlib
//! clears 128 KiB for each message. [`Lockstep`] uses the same encoder for messages that refer back
//! to earlier ones and are compressed once for many connections.

mod agreement;
mod budget;
mod codec;
mod compress;
mod compressor;
mod decompress;
mod lockstep;
mod pool;
mod position;
mod prepared;
mod short;
mod trail;
mod window;
mod worth;

pub use agreement::{Agreement, Context};
pub use budget::Budget;
pub use compressor::{Compressor, CompressorRequest};
pub use decompress::{Decompressor, Output};
pub use lockstep::Lockstep;
#[cfg(feature = "std")]
pub use pool::ThreadPool;
pub use pool::{Pool, Stock, Unpooled};
pub use prepared::Prepared;

pub(crate) use codec::{Codec, Inflated, PayloadChunk, PooledDecompressor};

/// The compression settings of an endpoint, for both roles.
///
/// The length of a compressed message reveals something about its content. Never compress secrets
/// and data that an attacker can choose in the same context (RFC 7692 §8); send secrets
/// uncompressed ([`Engine::send_uncompressed`](crate::Engine::send_uncompressed)).
///
/// ```
/// use linerate_proto::deflate::Deflate;
///
/// let mut frugal = Deflate::default();
/// (frugal.takeover, frugal.peer_takeover) = (false, false);
/// assert_eq!(frugal.window_bits, 12);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Deflate {
    /// The compression level, 1 (fastest) to 9 (smallest). Default: 4.
    ///
    /// For JSON messages of 250 bytes to 3 KB, levels 3 to 6 differ by a few percent in time and
    /// size, and at level 2 messages are up to a tenth longer. With takeover, level 1 uses the
    /// fixed codes, takes a tenth to a third of the time, and messages are 6 to 50 % longer;
    /// without takeover, it takes as long as level 2.
    pub level: u8,
    /// Messages shorter than this, in bytes, are not compressed. Default: 64; below that, even a
    /// good compressor saves less than the size of a header.
    pub message_bytes_min: usize,
    /// The size of the window that our messages may refer back to: 2^`window_bits` bytes, 8 to 15.
    /// The peer may ask for less. Default: 12 (4 KiB), which holds several messages of a few
    /// hundred bytes.
    pub window_bits: u8,
    /// The same for the peer's messages, 8 to 15. A client that cannot limit itself to fewer than
    /// 15 bits must then compress each message on its own. Default: 12.
    pub peer_window_bits: u8,
    /// True if our messages may refer back to earlier ones. Default: `true`.
    pub takeover: bool,
    /// True if the peer's messages may refer back to earlier ones. Default: `true`.
    pub peer_takeover: bool,
    /// True if only messages that are compressed outside the connection, by a [`Lockstep`], refer
    /// back to earlier ones. Takeover is negotiated as without this, but the connection compresses
    /// each message on its own and does not keep what it has sent. Default: `false`.
    pub external_takeover: bool,
    /// True if the connection can be [exported](crate::Engine::export) while a compressed message
    /// is arriving. A message that arrives in several reads then takes up to 18 KiB more memory,
    /// and if it has more than 8 KiB in compressed form, its Huffman codes are decoded twice.
    /// Default: `false`.
    pub exportable: bool,
    /// The largest allowed ratio of a message's inflated size to its compressed size, checked once
    /// 64 KiB have been inflated. `None` leaves only the limit of
    /// [`Limits::message_bytes_max`](crate::Limits::message_bytes_max). Default: `None`, because an
    /// honest message of zeros shrinks to a thousandth of its size, just like a hostile one.
    pub ratio_max: Option<u32>,
    /// The budget that counts and limits the memory of windows. Default: [`Budget::global`].
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
            external_takeover: false,
            exportable: false,
            ratio_max: None,
            budget: Budget::global(),
        }
    }
}
