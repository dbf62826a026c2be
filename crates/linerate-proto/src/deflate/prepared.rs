//! A message that is compressed once and sent to many connections.

use alloc::{boxed::Box, vec::Vec};

use super::{Context, Deflate, Pool, compress::SendState, worth};
use crate::opcode::MessageKind;

/// A message for many connections, compressed once.
///
/// It does not refer back to earlier messages, so it can be sent on any connection at any time.
/// Each connection adds the payload to its window, so that later messages can refer back to it.
#[derive(Clone, Debug)]
pub struct Prepared {
    kind: MessageKind,
    payload: Box<[u8]>,
    compressed: Option<Box<[u8]>>,
    window_bits: u8,
}

impl Prepared {
    /// Creates a message and compresses it if that is worth it. The `payload` of a text message
    /// must be UTF-8.
    pub fn new(
        kind: MessageKind,
        payload: impl Into<Vec<u8>>,
        options: &Deflate,
        pool: &dyn Pool,
    ) -> Self {
        let payload = payload.into();
        let window_bits = options.window_bits.clamp(8, 15);
        let is_worth =
            payload.len() >= options.message_bytes_min && worth::is_compressible(&payload);
        let compressed = is_worth.then(|| {
            let context = Context {
                window_bits,
                takeover: false,
            };
            let sending = SendState::new(context, options.level, options.budget);
            let compressor = sending.compress(pool, &payload, true);
            let compressed: Box<[u8]> = compressor.output().into();
            SendState::give(pool, compressor);
            compressed
        });
        Self {
            kind,
            compressed: compressed.filter(|compressed| compressed.len() < payload.len()),
            payload: payload.into(),
            window_bits,
        }
    }

    /// Returns the kind.
    pub const fn kind(&self) -> MessageKind {
        self.kind
    }

    /// Returns the uncompressed payload.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns whether there is a compressed form, which is shorter than the payload.
    pub const fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Returns the compressed payload if a peer with a window of 2^`window_bits` bytes can inflate
    /// it.
    pub(super) fn compressed_for(&self, window_bits: u8) -> Option<&[u8]> {
        let reaches_no_further =
            window_bits >= self.window_bits || self.payload.len() <= 1 << window_bits;
        self.compressed.as_deref().filter(|_| reaches_no_further)
    }
}
