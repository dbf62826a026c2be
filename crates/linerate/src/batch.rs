//! Messages that arrived together, in the buffer in which they arrived.

use std::{cell::RefCell, collections::VecDeque, fmt};

use linerate_proto::engine::MessageKind;
use linerate_simd::utf8::{InPlacePayload, InPlacePayloads};

use crate::{Message, pool};

/// How many unused batches a thread keeps.
const SPARE_MAX: usize = 16;

/// Batches with room for more messages than this are not kept.
const SPARE_MESSAGES_MAX: usize = 16 << 10;

/// Messages that arrived together; see [`WebSocket::recv_batch`](crate::WebSocket::recv_batch).
///
/// Short messages lie in the buffer in which they arrived, so that a batch costs no allocation and
/// no copy per message. Keep a message with [`MessageCow::into_message`].
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}/", listener.local_addr()?);
/// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
/// #     while let Some(message) = ws.recv().await? {
/// #         ws.send(message).await?;
/// #     }
/// #     Ok(())
/// # }, std::future::pending()));
/// let mut ws = linerate::connect(&url).await?; // an echo server
/// ws.send("Spam").await?;
/// if let Some(mut batch) = ws.recv_batch().await? {
///     for message in batch.drain() {
///         assert_eq!(message.as_text(), Some("Spam"));
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct Batch {
    /// `Some` until the batch is dropped.
    collected: Option<Box<Collected>>,
}

/// The content of a batch; recycled together with its memory.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) in_place: InPlacePayloads,
    /// Messages that were put together elsewhere, each with the number of messages in place before
    /// it.
    owned: VecDeque<(usize, Message)>,
    owned_bytes: usize,
    /// The number of messages in place that were taken.
    taken: usize,
}

#[allow(
    clippy::vec_box,
    reason = "batches are recycled together with their boxes"
)]
type Spare = Vec<Box<Collected>>;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

impl Batch {
    /// Returns an empty batch.
    pub(crate) fn new() -> Self {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        Self {
            collected: Some(spare.ok().flatten().unwrap_or_default()),
        }
    }

    pub(crate) fn collected_mut(&mut self) -> &mut Collected {
        self.collected.get_or_insert_default()
    }

    /// Returns the number of messages that were not taken yet.
    pub fn len(&self) -> usize {
        self.collected.as_deref().map_or(0, Collected::len)
    }

    /// Returns whether all messages were taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the messages one by one, in the order in which they were sent. Those that the iterator
    /// has not returned stay in the batch.
    pub fn drain(&mut self) -> Drain<'_> {
        let Collected {
            in_place,
            owned,
            taken,
            ..
        } = self.collected_mut();
        Drain {
            in_place,
            owned,
            taken,
        }
    }

    /// Returns the memory of the batch in bytes.
    pub(crate) fn capacity(&self) -> usize {
        let collected = self.collected.as_ref();
        collected.map_or(0, |all| all.in_place.input().len() + all.owned_bytes)
    }
}

impl Collected {
    /// Appends a message that was put together elsewhere.
    pub(crate) fn push(&mut self, message: Message) {
        self.owned_bytes += message.capacity();
        self.owned.push_back((self.in_place.len(), message));
    }

    /// Returns the memory of the messages that do not lie in the input.
    pub(crate) const fn owned_bytes(&self) -> usize {
        self.owned_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.in_place.len() - self.taken + self.owned.len()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        let Some(mut collected) = self.collected.take() else {
            return;
        };
        pool::give_input(collected.in_place.start(Vec::new(), 0));
        collected.owned.clear();
        (collected.owned_bytes, collected.taken) = (0, 0);
        let is_small = collected.in_place.capacity() <= SPARE_MESSAGES_MAX
            && collected.owned.capacity() <= SPARE_MESSAGES_MAX;
        _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if is_small && spare.len() < SPARE_MAX {
                spare.push(collected);
            }
        });
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// An iterator over the messages of a [`Batch`]; see [`Batch::drain`].
pub struct Drain<'a> {
    in_place: &'a InPlacePayloads,
    owned: &'a mut VecDeque<(usize, Message)>,
    taken: &'a mut usize,
}

impl<'a> Iterator for Drain<'a> {
    type Item = MessageCow<'a>;

    #[inline]
    fn next(&mut self) -> Option<MessageCow<'a>> {
        let next_is_owned = self
            .owned
            .front()
            .is_some_and(|(after, _)| after == self.taken);
        if next_is_owned && let Some((_, message)) = self.owned.pop_front() {
            return Some(message.into());
        }
        let payload = self.in_place.get(*self.taken)?;
        *self.taken += 1;
        Some(match payload {
            InPlacePayload::Binary(bytes) => bytes.into(),
            InPlacePayload::Text(text) => text.into(),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.in_place.len() - *self.taken + self.owned.len();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Drain<'_> {}

impl fmt::Debug for Drain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A message, borrowed or owned.
///
/// ```
/// use linerate::MessageCow;
///
/// let message = MessageCow::from("Spam");
/// assert_eq!((message.as_text(), message.len()), (Some("Spam"), 4));
/// assert_eq!(message.into_message(), linerate::Message::from("Spam"));
/// ```
#[derive(Debug)]
pub struct MessageCow<'a>(Content<'a>);

#[derive(Debug)]
pub(crate) enum Content<'a> {
    Binary(&'a [u8]),
    Owned(Message),
    Text(&'a str),
}

impl<'a> MessageCow<'a> {
    /// Returns the payload.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Content::Binary(bytes) => bytes,
            Content::Owned(message) => message.as_bytes(),
            Content::Text(text) => text.as_bytes(),
        }
    }

    /// Returns the text, or `None` for a binary message.
    #[inline]
    pub fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Content::Binary(_) => None,
            Content::Owned(message) => message.as_text(),
            Content::Text(text) => Some(text),
        }
    }

    /// Returns the kind.
    #[inline]
    pub const fn kind(&self) -> MessageKind {
        match &self.0 {
            Content::Binary(_) => MessageKind::Binary,
            Content::Owned(message) => message.kind(),
            Content::Text(_) => MessageKind::Text,
        }
    }

    /// Returns the length of the payload in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns whether the payload is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the message in memory of its own; copies it only if it is borrowed.
    pub fn into_message(self) -> Message {
        match self.0 {
            Content::Binary(bytes) => bytes.into(),
            Content::Owned(message) => message,
            Content::Text(text) => text.into(),
        }
    }

    #[inline]
    pub(crate) fn into_content(self) -> Content<'a> {
        self.0
    }
}

impl<'a> From<&'a [u8]> for MessageCow<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Self {
        Self(Content::Binary(bytes))
    }
}

impl<'a> From<&'a str> for MessageCow<'a> {
    #[inline]
    fn from(text: &'a str) -> Self {
        Self(Content::Text(text))
    }
}

impl<'a> From<&'a Message> for MessageCow<'a> {
    fn from(message: &'a Message) -> Self {
        match message {
            Message::Binary(bytes) => (**bytes).into(),
            Message::Text(text) => (**text).into(),
        }
    }
}

impl From<Message> for MessageCow<'_> {
    fn from(message: Message) -> Self {
        Self(Content::Owned(message))
    }
}

impl From<String> for MessageCow<'_> {
    fn from(text: String) -> Self {
        Message::from(text).into()
    }
}

impl From<Vec<u8>> for MessageCow<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Message::from(bytes).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_wherever_they_lie() {
        let mut batch = Batch::new();
        let collected = batch.collected_mut();
        collected.in_place.start(b"abcd".to_vec(), 4);
        collected.push("first".into());
        collected.in_place.push_binary(None, 0..1);
        collected.in_place.push_text(None, 1..2).unwrap();
        collected.push("second".into());
        collected.push("third".into());
        collected.in_place.push_text(None, 2..4).unwrap();
        collected.push("fourth".into());
        assert_eq!(batch.len(), 7);
        let first: Vec<_> = batch
            .drain()
            .take(3)
            .map(MessageCow::into_message)
            .collect();
        assert_eq!(
            first,
            ["first".into(), b"a".into(), "b".into()] as [Message; 3]
        );
        assert_eq!(batch.drain().len(), 4);
        let rest: Vec<_> = batch.drain().map(MessageCow::into_message).collect();
        let expected = ["second", "third", "cd", "fourth"].map(Message::from);
        assert_eq!(rest, expected);
        assert!(batch.is_empty());
    }

    #[test]
    fn a_recycled_batch_is_empty() {
        let mut batch = Batch::new();
        batch.collected_mut().push("Spam".into());
        drop(batch);
        let batch = Batch::new();
        assert!(batch.is_empty() && batch.capacity() == 0);
    }
}
