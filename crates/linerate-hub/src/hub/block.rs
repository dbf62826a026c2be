//! Frozen blocks, for all subscribers that come to the same place.

use std::{collections::VecDeque, time::Instant};

use bytes::Bytes;

/// Encoded publications of a class.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The number of the first publication.
    pub(crate) from: u64,
    /// The number of the publication that follows.
    pub(crate) to: u64,
    /// `None` if they can't be encoded.
    pub(crate) bytes: Option<Bytes>,
    /// When the oldest of its publications came.
    pub(crate) published: Instant,
    /// How many publications it holds, and how many of them newer ones have replaced.
    pub(crate) messages: u32,
    pub(crate) conflated: u64,
}

/// Blocks in the order of their first publications.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    list: VecDeque<Block>,
    bytes: usize,
}

impl Blocks {
    /// Adds a block, and drops the oldest others if there are too many bytes.
    pub(crate) fn insert(&mut self, block: Block, bytes_max: usize) {
        let mut place = self.list.partition_point(|other| other.from <= block.from);
        self.bytes += block.len();
        self.list.insert(place, block);
        while self.bytes > bytes_max && self.list.len() > 1 {
            let victim = usize::from(place == 0);
            if let Some(dropped) = self.list.remove(victim) {
                self.bytes -= dropped.len();
            }
            place = place.saturating_sub(1);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.bytes = 0;
    }

    /// Forgets the blocks that begin with publications that the ring no longer holds.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while let Some(block) = self.list.pop_front_if(|block| block.from < number) {
            self.bytes -= block.len();
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the newest block that begins at `from`.
    pub(crate) fn find(&self, from: u64) -> Option<&Block> {
        let last = self.list.back().filter(|block| block.from == from);
        last.or_else(|| {
            let place = self.list.partition_point(|block| block.from <= from);
            let before = self.list.get(place.checked_sub(1)?)?;
            (before.from == from).then_some(before)
        })
    }

    /// Returns where the first block behind `from` begins.
    pub(crate) fn next_after(&self, from: u64) -> Option<u64> {
        let place = self.list.partition_point(|block| block.from <= from);
        self.list.get(place).map(|block| block.from)
    }
}

impl Block {
    fn len(&self) -> usize {
        self.bytes.as_ref().map_or(0, Bytes::len) + size_of::<Self>()
    }
}
