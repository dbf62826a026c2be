//! What happens to the connections of a [`LocalReactor`](crate::LocalReactor).

use std::collections::VecDeque;

use linerate_proto::engine::{Closed, MessageKind};

use crate::connection::id::{ConnectionId, Slot};

/// While the collected messages use this many bytes, no further input is read.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Something that happened to a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LocalEvent {
    /// The connection has ended. This is its last event.
    Closed {
        /// The connection.
        connection: ConnectionId,
        /// How it ended. A stream ends like a WebSocket without a Close frame.
        closed: Closed,
    },
    /// The whole backlog has been written.
    Drained {
        /// The connection.
        connection: ConnectionId,
    },
    /// A message has arrived.
    Message {
        /// The connection.
        connection: ConnectionId,
        /// The kind of the message. Text is valid UTF-8.
        kind: MessageKind,
        /// A copy of the payload.
        payload: Vec<u8>,
    },
    /// A message has been arriving for longer than
    /// [`Options::message_timeout`](crate::Options::message_timeout). Unlike a server, a local
    /// reactor leaves it to its owner to close the connection.
    MessageLate {
        /// The connection.
        connection: ConnectionId,
    },
}

/// The events that the owner has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    queue: VecDeque<LocalEvent>,
    /// The memory of the collected messages, in bytes.
    message_bytes: usize,
    /// The connections whose input was stopped because there were too many messages.
    stopped: Vec<Slot>,
}

impl Events {
    pub(crate) fn push(&mut self, event: LocalEvent) {
        if let LocalEvent::Message { payload, .. } = &event {
            self.message_bytes += bytes_of(payload);
        }
        self.queue.push_back(event);
    }

    pub(crate) fn pop(&mut self) -> Option<LocalEvent> {
        let event = self.queue.pop_front()?;
        if let LocalEvent::Message { payload, .. } = &event {
            self.message_bytes -= bytes_of(payload);
        }
        Some(event)
    }

    /// Records that the input of a connection was stopped until there is room for messages.
    pub(crate) fn stop(&mut self, slot: Slot) {
        self.stopped.push(slot);
    }

    /// Returns the connections whose input may continue.
    pub(crate) fn take_stopped(&mut self) -> Vec<Slot> {
        match self.is_full() {
            true => Vec::new(),
            false => std::mem::take(&mut self.stopped),
        }
    }

    /// Returns whether the input of a connection was stopped.
    #[cfg(unix)]
    pub(crate) fn is_stopped(&self, slot: Slot) -> bool {
        self.stopped.contains(&slot)
    }

    /// Removes a connection from those whose input was stopped.
    pub(crate) fn forget_stopped(&mut self, slot: Slot) {
        self.stopped.retain(|stopped| *stopped != slot);
    }

    /// Returns whether input must stop until the owner has taken messages.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.message_bytes >= MESSAGE_BYTES_MAX
    }

    /// Returns the memory of the collected messages, in bytes.
    pub(crate) const fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Returns what a message counts: its payload, and about as much as an event uses besides.
const fn bytes_of(payload: &[u8]) -> usize {
    payload.len() + 128
}
