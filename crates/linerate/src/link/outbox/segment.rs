//! A block that is written from where it is, and what was queued behind it.

use bytes::Bytes;
use linerate_proto::Header;

use crate::pool;

/// Bytes that are not copied.
pub(super) enum Block {
    /// The payload of one message, masked if it must be; its prefix stands ahead of it.
    Payload(Vec<u8>),
    /// Whole frames that other connections send too.
    Shared(Bytes),
}

/// A block, and the frames that were queued behind it.
pub(super) struct Segment {
    /// Never empty.
    pub(super) block: Block,
    /// Bytes of the block that have been written.
    sent: usize,
    /// Where a frame of a shared block starts, not behind the first that is not begun.
    boundary: usize,
    pub(super) behind: Vec<u8>,
    /// Where the last control frame in `behind` ends, at a frame boundary.
    pub(super) control_end: usize,
}

impl Segment {
    pub(super) const fn new(block: Block) -> Self {
        Self {
            block,
            sent: 0,
            boundary: 0,
            behind: Vec::new(),
            control_end: 0,
        }
    }

    /// Accounts for bytes that were written; returns how many of them were behind the block.
    pub(super) fn advance(&mut self, written: usize) -> usize {
        let bytes = written.min(self.block.as_bytes().len() - self.sent);
        self.sent += bytes;
        written - bytes
    }

    /// Splits a shared block at the first frame that is not begun; returns what follows it, `None` if
    /// nothing does.
    pub(super) fn split_at_next_boundary(&mut self) -> Option<Self> {
        let Block::Shared(bytes) = &mut self.block else {
            return None;
        };
        while self.boundary < self.sent {
            let (header, prefix) = Header::decode(&bytes[self.boundary..]).ok()??;
            let end = self.boundary.saturating_add(prefix);
            self.boundary = end.saturating_add(header.payload_bytes as usize);
        }
        if self.boundary >= bytes.len() {
            return None;
        }
        let rest = Block::Shared(bytes.split_off(self.boundary));
        Some(Self {
            behind: std::mem::take(&mut self.behind),
            control_end: std::mem::take(&mut self.control_end),
            ..Self::new(rest)
        })
    }

    /// Returns how many bytes wait.
    pub(super) fn len(&self) -> usize {
        self.block.as_bytes().len() - self.sent + self.behind.len()
    }

    /// Returns the memory of its own.
    pub(super) fn capacity(&self) -> usize {
        let block = match &self.block {
            Block::Payload(payload) => payload.capacity(),
            Block::Shared(_) => 0,
        };
        block + self.behind.capacity()
    }

    /// Returns what waits.
    pub(super) fn pieces(&self) -> [&[u8]; 2] {
        [&self.block.as_bytes()[self.sent..], &self.behind]
    }

    /// Returns whether a part of the block is written.
    pub(super) const fn is_begun(&self) -> bool {
        self.sent > 0
    }

    /// Returns whether the whole block is written.
    pub(super) fn is_written(&self) -> bool {
        self.sent == self.block.as_bytes().len()
    }

    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.block, Block::Shared(_))
    }
}

impl Block {
    /// Gives its memory back.
    pub(super) fn give(self) {
        if let Self::Payload(payload) = self {
            pool::give(payload);
        }
    }

    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Payload(payload) => payload,
            Self::Shared(frames) => frames,
        }
    }
}
