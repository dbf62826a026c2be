//! Letters: what callbacks request for other connections of their worker.

use std::ops::Range;

use linerate_proto::{CloseCode, CloseFrame, engine::MessageKind};

use crate::{ConnectionId, Message, worker::Core};

/// Requests for connections, in order.
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

/// A request for a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order<'a> {
    /// Start the closing handshake with this code and reason.
    Close(CloseCode, &'a [u8]),
    /// Send a message.
    Message(MessageKind, &'a [u8]),
    /// Pause the input.
    Pause,
    /// Resume the input.
    Resume,
}

impl Letters {
    /// Returns the requests, each with its connection.
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

    /// Returns how many bytes of memory are in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.letters.len() * size_of::<Letter>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Removes everything; keeps up to `bytes_max` of the memory.
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

/// A handle on another connection of the same worker, returned by [`Tx::to`](crate::Tx::to).
///
/// Requests are carried out in order, once the worker has handled all pending input. Consecutive
/// messages to one connection are sent in one write. Nothing happens if the connection is gone or
/// closing by then; its handler is told so by [`close`](crate::Handler::close).
///
/// A connection that does not keep up reports that with [`congested`](crate::Handler::congested).
/// The source of the messages should then pause until its [`drain`](crate::Handler::drain). The
/// connection is dropped when more than [`Options::relayed_bytes_max`](crate::Options) are waiting.
#[derive(Debug)]
pub struct To<'a> {
    letters: &'a mut Letters,
    id: ConnectionId,
}

impl<'a> To<'a> {
    /// Returns `None` if the connection belongs to another worker.
    pub(crate) fn new(core: &'a mut Core, id: ConnectionId) -> Option<Self> {
        let letters = &mut core.letters;
        (id.worker == core.number).then_some(Self { letters, id })
    }

    /// Sends a message. The message is dropped if the connection is sending another message in
    /// pieces, because nothing can be sent in between.
    pub fn send(&mut self, message: Message<'_>) {
        let payload = self.letters.keep(message.as_bytes());
        let content = Content::Message(message.kind(), payload);
        self.letters.push(self.id, content);
    }

    /// Starts the closing handshake. A reason of more than 123 bytes is omitted.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        let reason = match reason.len() {
            0..=CloseFrame::REASON_BYTES_MAX => reason,
            _ => "",
        };
        let reason = self.letters.keep(reason.as_bytes());
        self.letters.push(self.id, Content::Close(code, reason));
    }

    /// Pauses the input; see [`Tx::pause`](crate::Tx::pause).
    pub fn pause(&mut self) {
        self.letters.push(self.id, Content::Pause);
    }

    /// Resumes the input.
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
