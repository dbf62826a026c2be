//! The events that an engine yields, and the chunks of messages (RFC 6455 §5.4–§5.6).

use alloc::vec::Vec;

use linerate_simd::{
    mask,
    utf8::{TextBuf, Validator},
};

use crate::{close::CloseFrame, error::ProtocolError, opcode::MessageKind, role::MaskKey};

/// A message, a chunk of one, or a control frame; payloads borrow from the input.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a consumer must handle each kind, or it would lose data"
)]
pub enum Event<'a> {
    /// A whole binary message.
    Binary(&'a [u8]),
    /// A chunk of a message that did not arrive whole in one frame and one input.
    Chunk(Chunk<'a>),
    /// The peer's Close frame; ours is queued, and no more events follow.
    Close(CloseFrame<'a>),
    /// A Ping; the Pong is queued.
    Ping(&'a [u8]),
    /// A Pong.
    Pong(&'a [u8]),
    /// A whole text message.
    Text(&'a str),
}

/// A chunk of a message.
///
/// The chunks of a message arrive in order and without gaps; only control frames can come between
/// them. Text is validated up to the end of each chunk; a chunk may end inside a code point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "relays and tests build chunks")]
pub struct Chunk<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    /// True if this is the first chunk.
    pub begins: bool,
    /// True if this is the last chunk.
    pub ends: bool,
    /// The bytes; may be empty.
    pub bytes: &'a [u8],
}

/// A whole message.
///
/// This enum is exhaustive: the protocol has only these two kinds (RFC 6455 §5.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "RFC 6455 §5.6 has two kinds of messages"
)]
pub enum Message<'a> {
    /// Arbitrary bytes.
    Binary(&'a [u8]),
    /// UTF-8 text.
    Text(&'a str),
}

impl<'a> Message<'a> {
    /// Returns the payload.
    #[inline]
    pub const fn as_bytes(self) -> &'a [u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the kind.
    #[inline]
    pub const fn kind(self) -> MessageKind {
        match self {
            Self::Binary(_) => MessageKind::Binary,
            Self::Text(_) => MessageKind::Text,
        }
    }
}

/// A message that was read in place from the input; see
/// [`Engine::take_message`](super::Engine::take_message).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "its three parts are matched as a whole"
)]
pub struct InPlaceMessage<'i> {
    /// The message, unmasked and, if it is text, validated.
    pub message: Message<'i>,
    /// The whole input, which contains the message.
    pub input: &'i [u8],
    /// The offset in `input` at which the message ends.
    pub end: usize,
}

/// Like [`Event`], but messages are still masked; see
/// [`Events::next_raw`](super::Events::next_raw).
#[derive(Debug)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a consumer must handle each kind, or it would lose data"
)]
pub enum RawEvent<'a> {
    /// The peer's Close frame; ours is queued, and no more events follow.
    Close(CloseFrame<'a>),
    /// A message, or a chunk of one.
    Data(Data<'a>),
    /// A Ping; the Pong is queued.
    Ping(&'a [u8]),
    /// A Pong.
    Pong(&'a [u8]),
}

/// A message or a chunk of one, still masked.
///
/// Each of the methods that return or append the bytes unmasks them in one pass. The caller must
/// validate text; [`append_text_to`](Self::append_text_to) and [`unmask_text`](Self::unmask_text)
/// do it in the same pass.
#[derive(Debug)]
pub struct Data<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    /// True if this is the first chunk.
    pub begins: bool,
    /// True if this is the last chunk.
    pub ends: bool,
    /// The number of bytes of this frame that have not arrived yet. The peer controls this number:
    /// use it as a hint for reserving memory only.
    pub frame_bytes_left: u64,
    /// True if the message was compressed; the bytes are then in the memory of the decompressor
    /// instead of the input.
    pub inflated: bool,
    pub(super) payload: &'a mut [u8],
    pub(super) mask: Option<MaskKey>,
    /// The offset of the chunk in its frame's payload, for the masking key.
    pub(super) phase: usize,
    /// The offset of the chunk in its message.
    pub(super) offset: u64,
}

impl<'a> Data<'a> {
    /// Returns the number of bytes in this chunk.
    pub const fn len(&self) -> usize {
        self.payload.len()
    }

    /// Returns whether this chunk has no bytes.
    pub const fn is_empty(&self) -> bool {
        self.payload.is_empty()
    }

    /// Unmasks in place and returns the bytes.
    #[inline]
    pub fn unmask(self) -> &'a mut [u8] {
        if let Some(MaskKey(key)) = self.mask {
            mask::apply(key, self.phase, self.payload);
        }
        self.payload
    }

    /// Unmasks a chunk of a text message in place, validates it and returns the bytes.
    ///
    /// `validator` must have seen exactly the earlier chunks of the message.
    ///
    /// # Errors
    /// Fails if the text is not UTF-8 or ends inside a code point. The caller must then call
    /// [`Engine::fail`](super::Engine::fail).
    pub fn unmask_text(self, validator: &mut Validator) -> Result<&'a [u8], ProtocolError> {
        let Self {
            ends,
            payload,
            mask,
            phase,
            offset,
            ..
        } = self;
        let pushed = match mask {
            Some(MaskKey(key)) => validator.push_masked(key, phase, payload),
            None => validator.push(payload),
        };
        let invalid_at = |bytes| ProtocolError::InvalidUtf8 {
            offset: offset + bytes as u64,
        };
        pushed.map_err(|error| invalid_at(error.valid_up_to()))?;
        if ends && !validator.is_complete() {
            return Err(invalid_at(payload.len()));
        }
        Ok(payload)
    }

    /// Appends the unmasked bytes to `out`.
    #[inline]
    pub fn append_to(self, out: &mut Vec<u8>) {
        match self.mask {
            Some(MaskKey(key)) => mask::append(key, self.phase, self.payload, out),
            None => out.extend_from_slice(self.payload),
        }
    }

    /// Appends the unmasked bytes to `out` and validates them.
    ///
    /// `out` must contain the earlier chunks of the message, except for complete code points that
    /// were taken out.
    ///
    /// # Errors
    /// Fails if the text is not UTF-8 or ends inside a code point. The caller must then call
    /// [`Engine::fail`](super::Engine::fail).
    #[inline]
    pub fn append_text_to(self, out: &mut TextBuf) -> Result<(), ProtocolError> {
        let invalid_at = |bytes| ProtocolError::InvalidUtf8 {
            offset: self.offset + bytes as u64,
        };
        let pushed = match self.mask {
            Some(MaskKey(key)) => out.push_masked(key, self.phase, self.payload),
            None => out.push(self.payload),
        };
        pushed.map_err(|error| invalid_at(error.valid_up_to()))?;
        if self.ends && !out.is_complete() {
            return Err(invalid_at(self.payload.len()));
        }
        Ok(())
    }
}
