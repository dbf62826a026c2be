//! What an engine lends: events, and the pieces of messages (RFC 6455 §5.4–§5.6).

use alloc::vec::Vec;

use linerate_simd::{
    mask,
    utf8::{TextBuf, Validator},
};

use super::MessageKind;
use crate::{close::CloseFrame, error::ProtocolError, frame::MaskKey};

/// What arrived; payloads borrow from the input.
///
/// Complete: a message in one piece, a piece of one, and the three control frames.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event<'a> {
    /// A whole binary message.
    Binary(&'a [u8]),
    /// A piece of a message that did not arrive in one frame and one input.
    Chunk(Chunk<'a>),
    /// The peer's Close frame; ours is queued, and nothing more will arrive.
    Close(CloseFrame<'a>),
    /// A Ping; the Pong is queued.
    Ping(&'a [u8]),
    /// A Pong.
    Pong(&'a [u8]),
    /// A whole text message.
    Text(&'a str),
}

/// A piece of a message.
///
/// The pieces of a message come in order and without gaps; only control frames come between them.
/// Text is validated up to the end of each piece, which may stand inside a code point.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Chunk<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    /// Whether this is the first piece.
    pub begins: bool,
    /// Whether this is the last piece.
    pub ends: bool,
    /// The bytes; may be empty.
    pub bytes: &'a [u8],
}

/// A whole message.
///
/// Complete: the protocol knows these two kinds (RFC 6455 §5.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
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

/// A message that was taken from where it stands in the input; see
/// [`Engine::take_message`](super::Engine::take_message).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taken<'i> {
    /// The message, unmasked and, if it is text, validated.
    pub message: Message<'i>,
    /// All of the input, the message in it.
    pub input: &'i [u8],
    /// Where in the input the message ends.
    pub end: usize,
}

/// What arrived, messages not unmasked yet; see [`Events::next_raw`](super::Events::next_raw).
///
/// Complete, like [`Event`].
#[derive(Debug)]
pub enum RawEvent<'a> {
    /// The peer's Close frame; ours is queued, and nothing more will arrive.
    Close(CloseFrame<'a>),
    /// A message, or a piece of one.
    Data(Data<'a>),
    /// A Ping; the Pong is queued.
    Ping(&'a [u8]),
    /// A Pong.
    Pong(&'a [u8]),
}

/// A message or a piece of one, as it stands on the wire.
///
/// Take it by one of the methods, each of which unmasks in one pass. Text must be validated by the
/// caller: [`append_text_to`](Self::append_text_to) does it.
#[derive(Debug)]
pub struct Data<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    /// Whether this is the first piece.
    pub begins: bool,
    /// Whether this is the last piece.
    pub ends: bool,
    /// The bytes that are still to come in this frame; a hint for reserving, never to be trusted
    /// beyond what has arrived.
    pub frame_bytes_left: u64,
    /// Whether the message is compressed, so that the bytes lie in the memory of what has inflated
    /// them and not in the input.
    pub inflated: bool,
    pub(super) payload: &'a mut [u8],
    pub(super) mask: Option<MaskKey>,
    /// Where the piece stands in its frame's payload.
    pub(super) phase: usize,
    /// Where the piece stands in its message.
    pub(super) offset: u64,
}

impl<'a> Data<'a> {
    /// Returns the number of bytes in this piece.
    pub const fn len(&self) -> usize {
        self.payload.len()
    }

    /// Returns whether this piece has no bytes.
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

    /// Unmasks a piece of a text message in place, validates it by `validator`, which must have seen
    /// the earlier pieces and no more, and returns the bytes.
    ///
    /// # Errors
    /// The text is not UTF-8, or ends inside a code point; the caller must
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

    /// Appends the unmasked bytes to `out`, which must hold the earlier pieces and no more, and
    /// validates them.
    ///
    /// # Errors
    /// The text is not UTF-8, or ends inside a code point; the caller must
    /// [`Engine::fail`](super::Engine::fail).
    #[inline]
    pub fn append_text_to(self, out: &mut TextBuf) -> Result<(), ProtocolError> {
        let pushed = match self.mask {
            Some(MaskKey(key)) => out.push_masked(key, self.phase, self.payload),
            None => out.push(self.payload),
        };
        pushed.map_err(|error| ProtocolError::InvalidUtf8 {
            offset: self.offset + error.valid_up_to() as u64,
        })?;
        if self.ends && !out.is_complete() {
            return Err(ProtocolError::InvalidUtf8 {
                offset: out.len() as u64,
            });
        }
        Ok(())
    }
}
