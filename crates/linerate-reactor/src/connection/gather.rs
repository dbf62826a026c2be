//! Messages that arrive in pieces: put together, or handed over as they come.

use linerate_proto::engine::{Data, MessageKind};
use linerate_simd::utf8::{TextBuf, Validator};

use crate::memory::pool::Pool;

/// A message that arrives in pieces; text is validated as it grows.
pub(crate) enum Gather {
    /// It is put together.
    Binary(Vec<u8>),
    /// It is put together.
    Text(TextBuf),
    /// Its pieces go to the handler as they arrive.
    Streamed(Stream),
}

/// A message whose pieces go to the handler as they arrive.
#[derive(Default)]
pub(crate) struct Stream {
    /// Meaningful if it is text.
    pub(crate) validator: Validator,
    /// Small pieces that arrived, unmasked.
    pub(crate) held: Vec<u8>,
    /// Whether the handler has got the first piece.
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

    /// Returns the memory, and leaves the gather empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Binary(Vec::new())) {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
            Self::Streamed(stream) => stream.held,
        }
    }
}

/// Boxes for gathers, to be used again.
#[derive(Default)]
pub(crate) struct Spare(
    #[allow(
        clippy::vec_box,
        reason = "what is kept is the allocation that a connection points to"
    )]
    Vec<Box<Gather>>,
);

impl Spare {
    /// How many are kept.
    const KEPT_MAX: usize = 64;

    /// Starts a message: one whose first frame has `streamed_bytes_min` bytes or more is streamed,
    /// another gets memory for `data` and, as far as that is in proportion, for what its frame
    /// announces.
    pub(crate) fn begin(
        &mut self,
        data: &Data<'_>,
        streamed_bytes_min: u64,
        pool: &mut Pool,
    ) -> Box<Gather> {
        let frame_bytes = data.frame_bytes_left.saturating_add(data.len() as u64);
        // What was compressed is in pieces from its first 16 KiB on, whole as its frame may be.
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

    /// Gives one back, whose memory has been taken out.
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
