//! The message that is arriving.

use linerate_proto::{
    ProtocolError,
    engine::{Data, MessageKind},
};
use linerate_simd::utf8::TextBuf;

use super::{Chunk, End, Mode};
use crate::{message::Message, pool};

/// How many bytes of the length that a frame announces are allocated as soon as its first byte
/// arrives. This is no more than the base cost of a connection, so an attacker gains nothing by
/// only starting frames.
pub(super) const ANNOUNCED_BYTES: usize = 2 << 10;

/// A message that has not arrived completely.
pub(super) enum Incoming {
    Binary(Vec<u8>),
    Text(TextBuf),
}

impl Incoming {
    /// Adds `data` to the message that is arriving; returns the message once it is complete, or a
    /// chunk if `mode` asks for chunks.
    pub(super) fn add(
        message: &mut Option<Self>,
        data: Data<'_>,
        mode: Mode,
    ) -> Result<Option<Chunk>, ProtocolError> {
        let ends = data.ends;
        if ends && message.is_none() {
            let mut incoming = Self::new(&data, mode);
            incoming.append(data)?;
            return Ok(Some(Chunk::whole(incoming.finish())));
        }
        let incoming = message.get_or_insert_with(|| Self::new(&data, mode));
        incoming.append(data)?;
        if ends {
            return Ok(message
                .take()
                .map(|incoming| Chunk::whole(incoming.finish())));
        }
        Ok(if !mode.is_whole() {
            incoming.take_chunk()
        } else {
            None
        })
    }

    fn append(&mut self, data: Data<'_>) -> Result<(), ProtocolError> {
        self.reserve(data.len());
        match self {
            Self::Binary(bytes) => data.append_to(bytes),
            Self::Text(text) => data.append_text_to(text)?,
        }
        Ok(())
    }

    /// Makes room for `additional` more bytes.
    #[inline]
    pub(super) fn reserve(&mut self, additional: usize) {
        match self {
            Self::Binary(bytes) => pool::reserve(bytes, additional),
            Self::Text(text) => {
                if text.capacity() - text.len() < additional {
                    let bytes = (text.len() + additional).max(2 * text.len());
                    pool::give(text.move_into(pool::take(bytes)));
                }
            }
        }
    }

    /// Starts a message with memory for the data that is about to be added. Memory for the rest of
    /// the frame, as announced in its header, comes from recycled buffers if possible; otherwise it
    /// is allocated only in proportion to what has arrived.
    fn new(data: &Data<'_>, mode: Mode) -> Self {
        let announced = match mode {
            Mode::Chunks | Mode::FirstChunk => 0,
            Mode::Ahead | Mode::Messages => {
                usize::try_from(data.frame_bytes_left).unwrap_or(usize::MAX)
            }
        };
        let proportionate = data.len() + announced.min(data.len().max(ANNOUNCED_BYTES));
        let whole = data.len().saturating_add(announced);
        let memory = if whole > proportionate {
            pool::take_recycled(whole).unwrap_or_else(|| pool::take(proportionate))
        } else {
            pool::take(whole)
        };
        match data.kind {
            MessageKind::Binary => Self::Binary(memory),
            MessageKind::Text => Self::Text(TextBuf::from_recycled(memory)),
        }
    }

    pub(super) fn into_bytes(self) -> (MessageKind, Vec<u8>) {
        match self {
            Self::Binary(bytes) => (MessageKind::Binary, bytes),
            Self::Text(text) => (MessageKind::Text, text.into_bytes()),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.len(),
            Self::Text(text) => text.len(),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.capacity(),
            Self::Text(text) => text.capacity(),
        }
    }

    /// Takes what has been collected; text only up to the last complete code point.
    pub(super) fn take_chunk(&mut self) -> Option<Chunk> {
        let message = match self {
            Self::Binary(bytes) => Message::from(std::mem::take(bytes)),
            Self::Text(text) => Message::from(text.take_finished(pool::take(0)).into_string()),
        };
        (!message.is_empty()).then_some(Chunk {
            message,
            end: End::Pending,
        })
    }

    pub(super) fn finish(self) -> Message {
        match self {
            Self::Binary(bytes) => bytes.into(),
            // The engine has validated the data to its end, so the text is complete.
            Self::Text(text) => text.finish().unwrap_or_default().into_string().into(),
        }
    }
}
