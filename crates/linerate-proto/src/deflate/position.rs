//! Positions in what connections send, for finding the compressor that continues there.

use core::sync::atomic::{AtomicU64, Ordering};

/// A position in the messages that one connection sends.
///
/// A compressor that is at this position already knows the bytes that it may refer back to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct MessagePosition {
    stream: u64,
    messages: u64,
}

impl MessagePosition {
    /// Returns the start of a new stream with a unique number.
    pub(super) fn start() -> Self {
        static STREAMS: AtomicU64 = AtomicU64::new(0);
        Self {
            stream: STREAMS.fetch_add(1, Ordering::Relaxed),
            messages: 0,
        }
    }

    /// Moves to the next message.
    pub(super) fn advance(&mut self) {
        self.messages += 1;
    }
}
