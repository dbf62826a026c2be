//! Messages that arrive in pieces: joined, or passed on as they arrive.

use linerate_proto::engine::{Data, MessageKind};
use linerate_simd::utf8::{TextBuf, Validator};

use crate::memory::pool::Pool;

/// A message that arrives in pieces; text is validated as it arrives.
pub(crate) enum Gather {
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

impl Gather {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
            Self::Streamed(stream) => &stream.held,
        }
    }

    /// Takes the memory out and leaves the gather empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Binary(Vec::new())) {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
            Self::Streamed(stream) => stream.held,
        }
    }
}

/// Boxes for gathers, kept for reuse.
#[derive(Default)]
pub(crate) struct Spare(
    #[allow(
        clippy::vec_box,
        reason = "the allocation that a connection points to is reused"
    )]
    Vec<Box<Gather>>,
);

impl Spare {
    /// Maximum number of boxes that are kept.
    const KEPT_MAX: usize = 64;

    /// Starts a message. A message whose first frame has `streamed_bytes_min` bytes or more is
    /// streamed. Any other gets memory for `data` and, in proportion to that, for the bytes that
    /// its frame announces.
    pub(crate) fn begin(
        &mut self,
        data: &Data<'_>,
        streamed_bytes_min: u64,
        pool: &mut Pool,
    ) -> Box<Gather> {
        let frame_bytes = data.frame_bytes_left.saturating_add(data.len() as u64);
        // A compressed message comes in pieces once 16 KiB are inflated, even if its frame is
        // complete.
        let is_whole = data.inflated && data.ends;
        let gather = match data.kind {
            _ if frame_bytes >= streamed_bytes_min && !is_whole => {
                Gather::Streamed(Stream::default())
            }
            MessageKind::Binary => Gather::Binary(take_memory(data, pool)),
            MessageKind::Text => Gather::Text(TextBuf::from_recycled(take_memory(data, pool))),
        };
        match self.0.pop() {
            Some(mut spare) => {
                *spare = gather;
                spare
            }
            None => Box::new(gather),
        }
    }

    /// Keeps a box for reuse. Its memory must have been taken out.
    pub(crate) fn give(&mut self, gather: Box<Gather>) {
        if self.0.len() < Self::KEPT_MAX {
            self.0.push(gather);
        }
    }
}

fn take_memory(data: &Data<'_>, pool: &mut Pool) -> Vec<u8> {
    let announced = usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX);
    pool.take_announced(data.len(), announced)
}
