//! Messages in recycled memory, as applications send and receive them.

use std::{fmt, ops::Deref};

use linerate_proto::engine::MessageKind;

use crate::pool;

/// The largest payload to copy, in bytes. Payloads up to this size are copied after their header,
/// so that many of them become one write; larger ones are written in place.
pub(crate) const COPIED_BYTES_MAX: usize = 32 << 10;

/// A text or binary message (RFC 6455 §5.6).
///
/// The enum is exhaustive because the protocol has only these two kinds.
///
/// ```
/// use linerate::Message;
///
/// let message = Message::from("Spam");
/// assert_eq!(message.as_text(), Some("Spam"));
/// assert_eq!(message.into_bytes(), b"Spam");
///
/// // The first byte cannot begin a character.
/// let message = Message::from(&b"\xffpam"[..]);
/// assert_eq!((message.as_text(), message.len()), (None, 4));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "RFC 6455 §5.6 has two kinds of messages"
)]
pub enum Message {
    /// Arbitrary bytes.
    Binary(Binary),
    /// UTF-8 text.
    Text(Text),
}

impl Message {
    /// Returns the payload.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Binary(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the text, or `None` for a binary message.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Binary(_) => None,
            Self::Text(text) => Some(text),
        }
    }

    /// Returns the kind.
    pub const fn kind(&self) -> MessageKind {
        match self {
            Self::Binary(_) => MessageKind::Binary,
            Self::Text(_) => MessageKind::Text,
        }
    }

    /// Returns the length of the payload in bytes.
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }

    /// Returns the size of the allocated buffer in bytes.
    pub(crate) fn capacity(&self) -> usize {
        match self {
            Self::Binary(bytes) => bytes.0.capacity(),
            Self::Text(text) => text.0.capacity(),
        }
    }

    /// Returns the payload as a vector, without copying it.
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Binary(bytes) => bytes.into_vec(),
            Self::Text(text) => text.into_string().into_bytes(),
        }
    }
}

/// The payload of a binary message.
///
/// Derefs to `[u8]`. The memory is recycled on drop.
#[derive(Default, Eq, PartialEq)]
pub struct Binary(Vec<u8>);

impl Binary {
    /// Returns the payload as a vector, without copying it.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

/// The payload of a text message.
///
/// Derefs to `str`. The memory is recycled on drop.
#[derive(Default, Eq, PartialEq)]
pub struct Text(String);

impl Text {
    /// Returns the payload as a string, without copying it.
    pub fn into_string(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        pool::give(std::mem::take(&mut self.0));
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        pool::give(std::mem::take(&mut self.0).into_bytes());
    }
}

impl Deref for Binary {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Clone for Binary {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Clone for Text {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl fmt::Debug for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Binary({} bytes)", self.0.len())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl From<Vec<u8>> for Binary {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Binary {
    fn from(bytes: &[u8]) -> Self {
        let mut copy = pool::take(bytes.len());
        copy.extend_from_slice(bytes);
        Self(copy)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        let mut copy = String::from_utf8(pool::take(text.len())).unwrap_or_default();
        copy.push_str(text);
        Self(copy)
    }
}

impl From<Binary> for Message {
    fn from(bytes: Binary) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Text> for Message {
    fn from(text: Text) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes.into())
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        Self::Binary(bytes.into())
    }
}

impl<const N: usize> From<&[u8; N]> for Message {
    fn from(bytes: &[u8; N]) -> Self {
        Self::Binary(bytes.as_slice().into())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}
