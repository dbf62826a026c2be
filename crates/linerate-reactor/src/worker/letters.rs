//! What callbacks do to other connections of their worker, until it is done.

use std::ops::Range;

use linerate_proto::{CloseCode, CloseFrame, engine::MessageKind};

use crate::{ConnectionId, Message, worker::Core};

/// What is to be done to connections, in order.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    bytes: Vec<u8>,
    letters: Vec<Letter>,
}

#[derive(Clone, Debug)]
struct Letter {
    to: ConnectionId,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Close(CloseCode, Range<usize>),
    Message(MessageKind, Range<usize>),
    Pause,
    Resume,
}

/// Something that is to be done to a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order<'a> {
    /// The closing handshake is to be started with this reason.
    Close(CloseCode, &'a [u8]),
    /// A message is to be sent.
    Message(MessageKind, &'a [u8]),
    /// The input is to stop.
    Pause,
    /// The input is to go on.
    Resume,
}

impl Letters {
    /// Returns what is to be done.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, Order<'_>)> {
        self.letters.iter().map(|letter| {
            let order = match &letter.content {
                Content::Close(code, reason) => Order::Close(*code, &self.bytes[reason.clone()]),
                Content::Message(kind, payload) => {
                    Order::Message(*kind, &self.bytes[payload.clone()])
                }
                Content::Pause => Order::Pause,
                Content::Resume => Order::Resume,
            };
            (letter.to, order)
        })
    }

    /// Returns the memory that is in use, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.letters.len() * size_of::<Letter>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Forgets all; the memory is kept up to `bytes_max`.
    pub(crate) fn clear(&mut self, bytes_max: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(bytes_max);
        self.letters.clear();
        self.letters.shrink_to(bytes_max / size_of::<Letter>());
    }

    fn push(&mut self, to: ConnectionId, content: Content) {
        self.letters.push(Letter { to, content });
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// Another connection of the same worker, as a callback reaches it by
/// [`Tx::to`](crate::Tx::to).
///
/// What is asked for here is done once the worker has handed over what there was to be read, in
/// order, and all that one connection is sent in a row is one write. Nothing happens if the
/// connection is gone by then, or closing: its handler learns of that by
/// [`close`](crate::Handler::close).
///
/// A connection that does not keep up reports that by [`congested`](crate::Handler::congested): what
/// feeds it is to be paused until its [`drain`](crate::Handler::drain). It is dropped when it has
/// [`Options::relayed_bytes_max`](crate::Options) waiting.
#[derive(Debug)]
pub struct To<'a> {
    letters: &'a mut Letters,
    id: ConnectionId,
}

impl<'a> To<'a> {
    /// Returns nothing if the connection belongs to another worker.
    pub(crate) fn new(core: &'a mut Core, id: ConnectionId) -> Option<Self> {
        let letters = &mut core.letters;
        (id.worker == core.number).then_some(Self { letters, id })
    }

    /// Sends a message. It is left out if the connection has begun one of its own in pieces, which
    /// nothing can come between.
    pub fn send(&mut self, message: Message<'_>) {
        let payload = self.letters.keep(message.as_bytes());
        let content = Content::Message(message.kind(), payload);
        self.letters.push(self.id, content);
    }

    /// Starts the closing handshake. A reason of more than 123 bytes is left out.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        let reason = match reason.len() {
            0..=CloseFrame::REASON_BYTES_MAX => reason,
            _ => "",
        };
        let reason = self.letters.keep(reason.as_bytes());
        self.letters.push(self.id, Content::Close(code, reason));
    }

    /// Stops the input; see [`Tx::pause`](crate::Tx::pause).
    pub fn pause(&mut self) {
        self.letters.push(self.id, Content::Pause);
    }

    /// Lets the input go on.
    pub fn resume(&mut self) {
        self.letters.push(self.id, Content::Resume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_out_as_they_went_in() {
        let mut letters = Letters::default();
        let [one, two] = [1, 2].map(|index| ConnectionId {
            worker: 0,
            index,
            serial: 0,
        });
        let mut to = To {
            letters: &mut letters,
            id: one,
        };
        to.send(Message::Text("Spam"));
        to.send(Message::Binary(b""));
        to.id = two;
        to.pause();
        to.resume();
        to.close(CloseCode::NORMAL, "bye");
        to.close(CloseCode::NORMAL, &"x".repeat(124));
        let expected = [
            (one, Order::Message(MessageKind::Text, b"Spam")),
            (one, Order::Message(MessageKind::Binary, b"")),
            (two, Order::Pause),
            (two, Order::Resume),
            (two, Order::Close(CloseCode::NORMAL, b"bye")),
            (two, Order::Close(CloseCode::NORMAL, b"")),
        ];
        assert!(letters.iter().eq(expected));
        letters.clear(0);
        assert!(letters.is_empty());
        assert_eq!(letters.bytes(), 0);
    }
}
