//! The requests of a log as columns of small numbers, from which queries are answered.
//!
//! A value is the code that a dictionary gave it. Every 4,096 requests make a block, in which each
//! column has just the bits that its highest number needs above its lowest: about ten bytes for a
//! request of which the log says 250.

mod bits;
mod block;
mod lines;

use block::ROWS_MAX;
pub(crate) use block::{Block, STATUS};
pub(crate) use lines::LineStore;

use crate::aggregate::row::Row;
use crate::summary::Filterable;

/// Keeps requests in a bounded number of bytes.
///
/// When they don't fit any more, all of them are dropped: an answer from a part would be wrong.
#[derive(Debug)]
pub(crate) struct Store {
    blocks: Vec<Block>,
    /// Those that make no block yet.
    pending: Vec<Row>,
    /// Where blocks are packed.
    packed: Vec<u8>,
    /// The bytes of all blocks.
    bytes: usize,
    /// How many requests were kept when they were too many.
    overflown_at: Option<u64>,
    bytes_max: usize,
}

impl Store {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            blocks: Vec::new(),
            pending: Vec::new(),
            packed: Vec::new(),
            bytes: 0,
            overflown_at: None,
            bytes_max,
        }
    }

    /// Keeps a request.
    #[inline]
    pub(crate) fn push(&mut self, row: &Row) {
        if self.overflown_at.is_some() {
            return;
        }
        self.pending.push(*row);
        if self.pending.len() == ROWS_MAX {
            self.seal();
        }
    }

    /// Returns the blocks, the last of which is made of what was not enough for one so far.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = std::borrow::Cow<'_, Block>> {
        use std::borrow::Cow;
        let pending = (!self.pending.is_empty())
            .then(|| Cow::Owned(Block::new(&self.pending, &mut Vec::new())));
        self.blocks.iter().map(Cow::Borrowed).chain(pending)
    }

    /// Returns how many requests were kept when they became too many; `None` if they did not.
    pub(crate) fn overflown_at(&self) -> Option<u64> {
        self.overflown_at
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn summary(&self) -> Filterable {
        Filterable {
            requests: self.rows(),
            bytes: self.memory_bytes() as u64,
            bytes_max: self.bytes_max as u64,
            complete: self.overflown_at.is_none(),
        }
    }

    /// Returns how many bytes of heap the store holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
            + self.blocks.capacity() * size_of::<Block>()
            + self.pending.capacity() * size_of::<Row>()
            + self.packed.capacity()
    }

    fn rows(&self) -> u64 {
        let blocks: usize = self.blocks.iter().map(Block::rows).sum();
        (blocks + self.pending.len()) as u64
    }

    /// Makes a block of what is pending, or drops everything if it does not fit.
    #[cold]
    fn seal(&mut self) {
        let block = Block::new(&self.pending, &mut self.packed);
        // A list of blocks that is full doubles.
        let grown = match self.blocks.len() == self.blocks.capacity() {
            true => self.blocks.len().max(4) * size_of::<Block>(),
            false => 0,
        };
        if self.memory_bytes() + block.bytes() + grown > self.bytes_max {
            self.overflown_at = Some(self.rows() - self.pending.len() as u64);
            self.blocks = Vec::new();
            self.pending = Vec::new();
            self.packed = Vec::new();
            self.bytes = 0;
            return;
        }
        self.bytes += block.bytes();
        self.blocks.push(block);
        self.pending.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS_MAX, Store};
    use crate::aggregate::row::Row;

    fn row(n: usize) -> Row {
        Row {
            time: n as i64 / 3,
            bytes_sent: (n * 7_919 % 10_000) as u64,
            duration: (!n.is_multiple_of(5)).then_some(n as u64),
            codes: [n as u32 % 100, 2, 0, 3, n as u32 % 7, 1],
            status: [200, 404][n % 2],
        }
    }

    fn rows(store: &Store) -> Vec<Row> {
        let mut rows = Vec::new();
        for block in store.blocks() {
            (0..block.rows()).for_each(|at| rows.push(block.row(at)));
        }
        rows
    }

    #[test]
    fn rows_come_back_in_order_whether_their_block_is_full_or_not() {
        let mut store = Store::new(1 << 20);
        let expected: Vec<Row> = (0..ROWS_MAX * 2 + 77).map(row).collect();
        for (count, row) in expected.iter().enumerate() {
            if [0, 1, ROWS_MAX, ROWS_MAX + 1].contains(&count) {
                assert_eq!(rows(&store), expected[..count]);
            }
            store.push(row);
        }
        assert_eq!(rows(&store), expected);
        let summary = store.summary();
        assert_eq!(summary.requests, expected.len() as u64);
        assert!(summary.complete && summary.bytes < 1 << 20);
    }

    #[test]
    fn all_rows_are_dropped_when_one_block_too_many_comes() {
        let mut full = Store::new(1 << 20);
        let mut count = 0;
        while full.overflown_at().is_none() {
            assert!(full.memory_bytes() <= 1 << 20);
            full.push(&row(count));
            count += 1;
        }
        assert_eq!(full.overflown_at(), Some((count - ROWS_MAX) as u64));
        assert_eq!((full.memory_bytes(), rows(&full).len()), (0, 0));
        full.push(&row(0));
        let summary = full.summary();
        assert_eq!((summary.requests, summary.complete), (0, false));
        assert_eq!(summary.bytes_max, 1 << 20);
    }
}
