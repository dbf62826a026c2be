//! Messages owned by the application.

use linerate_proto::engine::MessageKind;

/// A text or binary message (RFC 6455 §5.6).
///
/// This enum is complete: the protocol has no other kinds of messages.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Message {
    /// Arbitrary bytes.
    Binary(Vec<u8>),
    /// UTF-8 text.
    Text(String),
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

    /// Returns whether this is a text or a binary message.
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
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for Message {
    fn from(bytes: &[u8]) -> Self {
        Self::Binary(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes)
    }
}
