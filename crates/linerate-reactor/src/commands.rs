//! Commands: what callbacks and other threads request for single connections of a worker.

use std::ops::Range;

use linerate_proto::{
    CloseCode, CloseFrame,
    engine::{Message, MessageKind},
};

use crate::connection::id::Slot;

/// Commands for connections, in order.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    to: Slot,
    content: Stored,
}

#[derive(Clone, Debug)]
enum Stored {
    Close(CloseCode, Range<usize>),
    Message(MessageKind, Range<usize>),
    Pause,
    Resume,
}

/// A command for a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Command<'a> {
    /// Start the closing handshake with this code and reason.
    Close(CloseCode, &'a [u8]),
    /// Send a message.
    Message(MessageKind, &'a [u8]),
    /// Pause the input.
    Pause,
    /// Resume the input.
    Resume,
}

impl Commands {
    /// Returns the commands, each with its connection.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, Command<'_>)> {
        self.iter_from(0)
    }

    /// Returns the commands from number `first` on, each with its connection.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = (Slot, Command<'_>)> {
        self.entries[first..].iter().map(|entry| {
            let command = match &entry.content {
                Stored::Close(code, reason) => Command::Close(*code, &self.bytes[reason.clone()]),
                Stored::Message(kind, payload) => {
                    Command::Message(*kind, &self.bytes[payload.clone()])
                }
                Stored::Pause => Command::Pause,
                Stored::Resume => Command::Resume,
            };
            (entry.to, command)
        })
    }

    /// Returns how many bytes of memory a message with this payload takes.
    pub(crate) const fn bytes_for(payload: &[u8]) -> usize {
        payload.len() + size_of::<Entry>()
    }

    /// Returns the number of commands.
    pub(crate) const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns how many bytes of memory are in use.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Removes everything; keeps up to `bytes_max` of the memory.
    pub(crate) fn clear(&mut self, bytes_max: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(bytes_max);
        self.entries.clear();
        self.entries.shrink_to(bytes_max / size_of::<Entry>());
    }

    fn push(&mut self, to: Slot, content: Stored) {
        self.entries.push(Entry { to, content });
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }
}

/// A handle on another connection of the same worker, returned by
/// [`Context::to`](crate::Context::to).
///
/// Requests are carried out in order, once the worker has handled all pending input. Consecutive
/// messages to one connection are sent in one write. Nothing happens if the connection is gone or
/// closing by then; its handler is told so by [`close`](crate::Handler::close).
///
/// A connection that does not keep up reports that with [`congested`](crate::Handler::congested).
/// The source of the messages should then pause until its [`drain`](crate::Handler::drain). The
/// connection is dropped when more than [`Options::relayed_bytes_max`](crate::Options) are waiting.
#[derive(Debug)]
pub struct ConnectionHandle<'a> {
    commands: &'a mut Commands,
    slot: Slot,
}

impl<'a> ConnectionHandle<'a> {
    pub(crate) const fn new(commands: &'a mut Commands, slot: Slot) -> Self {
        Self { commands, slot }
    }

    /// Sends a message. The message is dropped if the connection is sending another message in
    /// pieces, because nothing can be sent in between.
    ///
    /// [`Counters::messages_dropped`](crate::Counters::messages_dropped) counts it then.
    pub fn send(&mut self, message: Message<'_>) {
        let payload = self.commands.keep(message.as_bytes());
        let content = Stored::Message(message.kind(), payload);
        self.commands.push(self.slot, content);
    }

    /// Starts the closing handshake. A reason of more than 123 bytes is omitted.
    pub fn close(&mut self, code: CloseCode, reason: &str) {
        let reason = match reason.len() {
            0..=CloseFrame::REASON_BYTES_MAX => reason,
            _ => "",
        };
        let reason = self.commands.keep(reason.as_bytes());
        self.commands.push(self.slot, Stored::Close(code, reason));
    }

    /// Pauses the input; see [`Context::pause`](crate::Context::pause).
    pub fn pause(&mut self) {
        self.commands.push(self.slot, Stored::Pause);
    }

    /// Resumes the input.
    pub fn resume(&mut self) {
        self.commands.push(self.slot, Stored::Resume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_kept_in_order() {
        let mut commands = Commands::default();
        let [one, two] = [1, 2].map(|index| Slot { index, serial: 0 });
        let mut handle = ConnectionHandle {
            commands: &mut commands,
            slot: one,
        };
        handle.send(Message::Text("Spam"));
        handle.send(Message::Binary(b""));
        handle.slot = two;
        handle.pause();
        handle.resume();
        handle.close(CloseCode::NORMAL, "bye");
        handle.close(CloseCode::NORMAL, &"x".repeat(124));
        let expected = [
            (one, Command::Message(MessageKind::Text, b"Spam")),
            (one, Command::Message(MessageKind::Binary, b"")),
            (two, Command::Pause),
            (two, Command::Resume),
            (two, Command::Close(CloseCode::NORMAL, b"bye")),
            (two, Command::Close(CloseCode::NORMAL, b"")),
        ];
        assert!(commands.iter().eq(expected));
        commands.clear(0);
        assert!(commands.is_empty());
        assert_eq!(commands.bytes(), 0);
    }
}
