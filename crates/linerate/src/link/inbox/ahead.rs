//! The queue of what was parsed while the application did not receive.

use std::{cell::RefCell, collections::VecDeque};

use linerate_proto::ProtocolError;

use super::Chunk;

/// The maximum number of messages in the queue, whatever their size.
const QUEUED_MAX: usize = 1_024;

/// How many queues a thread keeps; queues with room for more than [`SPARE_MESSAGES_MAX`] messages
/// are not kept.
const SPARE_MAX: usize = 64;

const SPARE_MESSAGES_MAX: usize = 64;

/// What was parsed while the application did not receive.
#[derive(Default)]
pub(super) struct Ahead {
    chunks: VecDeque<Chunk>,
    bytes: usize,
    /// The memory of the queued messages in bytes.
    capacity: usize,
    /// What fails the connection after these messages.
    error: Option<Box<ProtocolError>>,
}

#[allow(
    clippy::vec_box,
    reason = "queues are recycled together with their boxes"
)]
type Spare = Vec<Box<Ahead>>;

thread_local! {
    /// Recycled queues. An idle connection does not have a queue.
    static SPARE: RefCell<Spare> = const { RefCell::new(Vec::new()) };
}

impl Ahead {
    /// Returns an empty queue.
    pub(super) fn take() -> Box<Self> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        spare.ok().flatten().unwrap_or_default()
    }

    /// Recycles a queue, which must be empty.
    pub(super) fn give(ahead: Box<Self>) {
        _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_MAX && ahead.chunks.capacity() <= SPARE_MESSAGES_MAX {
                spare.push(ahead);
            }
        });
    }

    pub(super) fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.message.len();
        self.capacity += chunk.message.capacity();
        self.chunks.push_back(chunk);
    }

    /// Appends an error that fails the connection once the messages before it were received.
    pub(super) fn push_error(&mut self, error: Box<ProtocolError>) {
        self.error = Some(error);
    }

    /// Puts a message back that was taken.
    pub(super) fn push_front(&mut self, chunk: Chunk) {
        self.bytes += chunk.message.len();
        self.capacity += chunk.message.capacity();
        self.chunks.push_front(chunk);
    }

    pub(super) fn has_no_messages(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(super) fn take_error(&mut self) -> Option<Box<ProtocolError>> {
        self.error.take()
    }

    pub(super) fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.message.len();
        self.capacity -= chunk.message.capacity();
        Some(chunk)
    }

    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        (self.bytes, self.capacity) = (0, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.error.is_none()
    }

    /// Returns whether the queue, together with `more_bytes`, is so long that reading should stop.
    pub(super) fn is_full(&self, more_bytes: usize, bytes_max: usize) -> bool {
        self.bytes + more_bytes >= bytes_max || self.chunks.len() >= QUEUED_MAX
    }

    /// Returns the memory of the queue and its messages in bytes.
    pub(super) fn capacity(&self) -> usize {
        self.capacity + self.chunks.capacity() * size_of::<Chunk>()
    }
}
