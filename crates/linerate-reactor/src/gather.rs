//! Messages that arrive in pieces, and the memory for them.

use linerate_proto::engine::{Data, MessageKind};
use linerate_simd::utf8::TextBuf;

use crate::pool::Pool;

/// A message that is put together; text is validated as it grows.
pub(crate) enum Gather {
    Binary(Vec<u8>),
    Text(TextBuf),
}

impl Gather {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the memory, and leaves the gather empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        match std::mem::replace(self, Self::Binary(Vec::new())) {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.into_bytes(),
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

    /// Starts a message with memory for `data` and, as far as that is in proportion, for what its
    /// frame announces.
    pub(crate) fn begin(&mut self, data: &Data<'_>, pool: &mut Pool) -> Box<Gather> {
        let announced = usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX);
        let memory = pool.take_announced(data.len(), announced);
        let gather = match data.kind {
            MessageKind::Binary => Gather::Binary(memory),
            MessageKind::Text => Gather::Text(TextBuf::from_recycled(memory)),
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
