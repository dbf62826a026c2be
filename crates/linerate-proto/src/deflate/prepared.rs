//! A message that is compressed once and sent to many.

use alloc::{boxed::Box, vec::Vec};

use super::{Context, Deflate, Pool, compress::Sending, worth};
use crate::engine::MessageKind;

/// A message for many connections, compressed once.
///
/// It refers back to no earlier message, so that it is valid whatever was sent on a connection
/// before. Each connection that takes it remembers its payload, so that later messages may refer
/// back to it.
#[derive(Clone, Debug)]
pub struct Prepared {
    kind: MessageKind,
    payload: Box<[u8]>,
    compressed: Option<Box<[u8]>>,
    window_bits: u8,
}

impl Prepared {
    /// Compresses a message, unless that is not worth it. `payload` of a text message must be UTF-8.
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
            let sending = Sending::new(context, options.level, options.budget);
            let compressor = sending.compress(pool, &payload, true);
            let compressed: Box<[u8]> = compressor.output().into();
            Sending::give(pool, compressor);
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

    /// Returns the payload as it is.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Returns whether it is shorter than its payload.
    pub const fn is_compressed(&self) -> bool {
        self.compressed.is_some()
    }

    /// Returns the compressed payload, if a connection with such a window can inflate it.
    pub(super) fn compressed_for(&self, window_bits: u8) -> Option<&[u8]> {
        let reaches_no_further =
            window_bits >= self.window_bits || self.payload.len() <= 1 << window_bits;
        self.compressed.as_deref().filter(|_| reaches_no_further)
    }
}
