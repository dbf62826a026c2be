//! Messages that are sent together.

use std::fmt;

use linerate_proto::{Header, engine::MessageKind, frame};

use crate::{Message, MessageCow, batch::Content, message::COPIED_BYTES_MAX, pool};

/// The capacity of the first buffer, in bytes.
const CAPACITY_MIN: usize = 4 << 10;

/// The maximum capacity of a buffer before anything is pushed, in bytes.
const CAPACITY_FIRST_MAX: usize = 256 << 10;

/// Messages to send together with
/// [`WebSocket::send_replies`](crate::WebSocket::send_replies).
///
/// They are framed one after the other in one buffer, which is written as it is by a server without
/// compression. A client's messages are masked, and compressed ones compressed, when they are sent.
///
/// ```no_run
/// # async fn f(ws: &mut linerate::WebSocket) -> linerate::Result<()> {
/// let mut replies = linerate::Replies::new();
/// while let Some(mut batch) = ws.recv_batch().await? {
///     for message in batch.drain() {
///         replies.push(message);
///     }
///     ws.send_replies(&mut replies).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct Replies {
    /// Frames as a server sends them.
    frames: Vec<u8>,
    /// Long messages, each with the number of bytes of `frames` before it.
    long: Vec<(usize, Message)>,
    long_bytes: usize,
    messages: u64,
    /// The length of the previous list in bytes, up to [`CAPACITY_FIRST_MAX`]; the next one starts
    /// with this capacity.
    previous_bytes: u32,
}

impl Replies {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self {
            frames: Vec::new(),
            long: Vec::new(),
            long_bytes: 0,
            messages: 0,
            previous_bytes: 0,
        }
    }

    /// Appends a message.
    #[inline]
    pub fn push<'m>(&mut self, message: impl Into<MessageCow<'m>>) {
        match message.into().into_content() {
            Content::Binary(bytes) => self.push_copy(MessageKind::Binary, bytes),
            Content::Owned(message) => self.push_owned(message),
            Content::Text(text) => self.push_copy(MessageKind::Text, text.as_bytes()),
        }
    }

    /// Returns the number of messages.
    pub const fn len(&self) -> u64 {
        self.messages
    }

    /// Returns whether there are no messages.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Returns the length of all messages and their frame headers, in bytes.
    #[inline]
    pub const fn bytes(&self) -> usize {
        self.frames.len() + self.long_bytes
    }

    /// Removes all messages.
    pub fn clear(&mut self) {
        pool::give(std::mem::take(&mut self.frames));
        self.long.clear();
        (self.long_bytes, self.messages) = (0, 0);
    }

    #[inline]
    fn push_copy(&mut self, kind: MessageKind, payload: &[u8]) {
        let bytes = Header::BYTES_MAX + payload.len();
        if self.frames.capacity() - self.frames.len() < bytes {
            self.grow(bytes);
        }
        frame::append(&mut self.frames, kind.opcode(), payload);
        self.messages += 1;
    }

    #[cold]
    fn grow(&mut self, additional: usize) {
        let first = (self.previous_bytes as usize).max(CAPACITY_MIN);
        let capacity = if self.frames.is_empty() { first } else { 0 };
        pool::reserve(&mut self.frames, additional.max(capacity));
    }

    #[inline(never)]
    fn push_owned(&mut self, message: Message) {
        if message.len() <= COPIED_BYTES_MAX {
            return self.push_copy(message.kind(), message.as_bytes());
        }
        self.messages += 1;
        self.long_bytes += message.len();
        self.long.push((self.frames.len(), message));
    }

    /// Returns the frames and the long messages, each with the number of bytes of frames before it,
    /// for sending.
    pub(crate) fn parts(&mut self) -> (&mut Vec<u8>, &mut Vec<(usize, Message)>) {
        self.previous_bytes = self.frames.len().min(CAPACITY_FIRST_MAX) as u32;
        (&mut self.frames, &mut self.long)
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        pool::give(std::mem::take(&mut self.frames));
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replies")
            .field("len", &self.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}
