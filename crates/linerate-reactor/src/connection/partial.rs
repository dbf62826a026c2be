//! Messages that arrive in pieces: joined, or passed on as they arrive.

use linerate_proto::engine::{Data, MessageKind};
use linerate_simd::utf8::{TextBuf, Validator};

use crate::memory::pool::Pool;

/// A message that arrives in pieces; text is validated as it arrives.
pub(crate) enum PartialMessage {
    /// A binary message that is being joined.
    Binary(Vec<u8>),
    /// A text message that is being joined.
    Text(TextBuf),
    /// A message whose pieces are passed to the handler as they arrive.
    Streamed(Stream),
}

/// A message whose pieces are passed to the handler as they arrive.
#[derive(Default)]
pub(crate) struct Stream {
    /// Used only for text.
    pub(crate) validator: Validator,
    /// Small pieces that have arrived, unmasked.
    pub(crate) held: Vec<u8>,
    /// True if the handler has received the first piece.
    pub(crate) begun: bool,
}

impl PartialMessage {
    /// Starts a message. A message whose first frame has `streamed_bytes_min` bytes or more is
    /// streamed. Any other gets memory for `data` and, in proportion to that, for the bytes that
    /// its frame announces.
    pub(crate) fn begin(data: &Data<'_>, streamed_bytes_min: u64, pool: &mut Pool) -> Self {
        let frame_bytes = data.frame_bytes_left.saturating_add(data.len() as u64);
        // A compressed message comes in pieces once 16 KiB are inflated, even if its frame is
        // complete.
        let is_whole = data.inflated && data.ends;
        match data.kind {
            _ if frame_bytes >= streamed_bytes_min && !is_whole => {
                Self::Streamed(Stream::default())
            }
            MessageKind::Binary => Self::Binary(take_memory(data, pool)),
            MessageKind::Text => Self::Text(TextBuf::from_recycled(take_memory(data, pool))),
        }
    }

    /// Returns the memory of the message in bytes.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.capacity(),
            Self::Text(text) => text.capacity(),
            Self::Streamed(stream) => stream.held.capacity(),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
            Self::Streamed(stream) => &stream.held,
        }
    }

    /// Takes the memory out and leaves the message empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match std::mem::take(self) {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
            Self::Streamed(stream) => stream.held,
        }
    }
}

impl Default for PartialMessage {
    fn default() -> Self {
        Self::Binary(Vec::new())
    }
}

fn take_memory(data: &Data<'_>, pool: &mut Pool) -> Vec<u8> {
    let announced = usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX);
    pool.take_announced(data.len(), announced)
}
