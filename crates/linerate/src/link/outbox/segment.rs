//! A block of bytes that is written in place, and the frames that were queued after it.

use bytes::Bytes;
use linerate_proto::Header;

use crate::pool;

/// Bytes that are written without copying them.
pub(super) enum Block {
    /// The payload of one message, masked if required; its header is in the bytes before it.
    Payload(Vec<u8>),
    /// Whole frames that are shared with other connections.
    Shared(Bytes),
}

/// A block, and the frames that were queued after it.
pub(super) struct Segment {
    /// Never empty.
    pub(super) block: Block,
    /// How many bytes of the block have been written.
    sent: usize,
    /// The start of a frame in a shared block, at most that of the first frame that is not partly
    /// written.
    boundary: usize,
    pub(super) behind: Vec<u8>,
    /// The end of the last control frame in `behind`, which is a frame boundary.
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

    /// Accounts for bytes that were written; returns how many of them came after the block.
    pub(super) fn advance(&mut self, written: usize) -> usize {
        let bytes = written.min(self.block.as_bytes().len() - self.sent);
        self.sent += bytes;
        written - bytes
    }

    /// Splits a shared block at the first frame of which nothing has been written; returns the part
    /// from that frame on, or `None` if there is none.
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

    /// Returns the number of bytes left to write.
    pub(super) fn len(&self) -> usize {
        self.block.as_bytes().len() - self.sent + self.behind.len()
    }

    /// Returns the size of its memory in bytes, without shared frames.
    pub(super) fn capacity(&self) -> usize {
        let block = match &self.block {
            Block::Payload(payload) => payload.capacity(),
            Block::Shared(_) => 0,
        };
        block + self.behind.capacity()
    }

    /// Returns the bytes left to write.
    pub(super) fn slices(&self) -> [&[u8]; 2] {
        [&self.block.as_bytes()[self.sent..], &self.behind]
    }

    /// Returns whether any part of the block has been written.
    pub(super) const fn is_begun(&self) -> bool {
        self.sent > 0
    }

    /// Returns whether the whole block has been written.
    pub(super) fn is_written(&self) -> bool {
        self.sent == self.block.as_bytes().len()
    }

    pub(super) const fn is_shared(&self) -> bool {
        matches!(self.block, Block::Shared(_))
    }
}

impl Block {
    /// Returns its memory to the pool.
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
