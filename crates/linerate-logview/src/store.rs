//! The requests of a log as columns of small numbers, from which queries are answered.
//!
//! A value is stored as its code in a dictionary. Every 4,096 requests form a block, in which each
//! column uses only the bits that the difference between its highest and lowest number needs: about
//! ten bytes for a request whose log line has 250.

mod bits;
mod block;
mod lines;

use block::ROWS_MAX;
pub(crate) use block::{ADDRESS, AGENT, BYTES_SENT, Block, COLUMNS, DURATION, HOST, METHOD};
pub(crate) use block::{PATH, REFERRER, Row, STATUS, TEXTS, TIME};
pub(crate) use lines::LineStore;

use std::collections::VecDeque;

use crate::summary::Filterable;

/// The least that a request counts for, in bytes, so that with 40 MiB a query scans at most about
/// ten million requests.
const ROW_BYTES_MIN: usize = 4;

/// Stores requests in a bounded number of bytes.
///
/// When they no longer fit, all of them are dropped, because an answer from a part would be wrong.
/// If `ages` is set, the oldest are dropped to make space for the newest instead.
#[derive(Debug)]
pub(crate) struct Store {
    blocks: VecDeque<Block>,
    /// The requests that do not fill a block yet.
    pending: Vec<Row>,
    /// The buffer in which blocks are packed.
    packed: Vec<u8>,
    /// The bytes of all blocks.
    bytes: usize,
    /// How many requests were stored when the limit was exceeded.
    overflown_at: Option<u64>,
    bytes_max: usize,
    /// True if the oldest requests are dropped for the newest.
    ages: bool,
    /// How many requests were dropped that way.
    aged: u64,
}

impl Store {
    pub(crate) fn new(bytes_max: usize, ages: bool) -> Self {
        Self {
            blocks: VecDeque::new(),
            pending: Vec::new(),
            packed: Vec::new(),
            bytes: 0,
            overflown_at: None,
            bytes_max,
            ages,
            aged: 0,
        }
    }

    /// Stores requests.
    pub(crate) fn extend(&mut self, mut rows: &[Row]) {
        while !rows.is_empty() && self.overflown_at.is_none() {
            let room = ROWS_MAX - self.pending.len();
            let (some, rest) = rows.split_at(rows.len().min(room));
            self.reserve(some.len());
            self.pending.extend_from_slice(some);
            if self.pending.len() == ROWS_MAX {
                self.seal();
            }
            rows = rest;
        }
    }

    /// Returns the blocks. The last one is built from the requests that do not fill a block yet.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = std::borrow::Cow<'_, Block>> {
        use std::borrow::Cow;
        let pending = (!self.pending.is_empty())
            .then(|| Cow::Owned(Block::new(&self.pending, &mut Vec::new())));
        self.blocks.iter().map(Cow::Borrowed).chain(pending)
    }

    /// Returns how many requests were stored when the limit was exceeded, or `None` if it was not.
    pub(crate) fn overflown_at(&self) -> Option<u64> {
        self.overflown_at
    }

    /// Returns how many requests came before those that are stored.
    pub(crate) fn aged(&self) -> u64 {
        self.aged
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn summary(&self) -> Filterable {
        Filterable {
            requests: self.rows(),
            bytes: self.memory_bytes() as u64,
            bytes_max: self.bytes_max as u64,
            complete: self.overflown_at.is_none() && self.aged == 0,
            since: self.since(),
        }
    }

    /// Returns how many bytes of heap the store holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
            + self.blocks.capacity() * size_of::<Block>()
            + self.pending.capacity() * size_of::<Row>()
            + self.packed.capacity()
    }

    /// Returns how many more bytes the list of blocks occupies while it grows.
    pub(crate) fn growth_bytes_max(&self) -> usize {
        2 * self.blocks.capacity() * size_of::<Block>()
    }

    /// Returns the earliest time of the oldest stored block, if any requests were dropped for newer
    /// ones.
    fn since(&self) -> Option<i64> {
        let oldest = self.blocks.front().filter(|_| self.aged > 0)?;
        Some(oldest.times().0)
    }

    fn rows(&self) -> u64 {
        let blocks: usize = self.blocks.iter().map(Block::rows).sum();
        (blocks + self.pending.len()) as u64
    }

    /// Reserves space for more pending requests, with the same capacity as if they came one by one.
    fn reserve(&mut self, more: usize) {
        let needed = self.pending.len() + more;
        if needed > self.pending.capacity() {
            let capacity = needed.next_power_of_two();
            self.pending.reserve_exact(capacity - self.pending.len());
        }
    }

    /// Makes a block of the pending requests. Drops everything if it does not fit.
    #[cold]
    fn seal(&mut self) {
        let block = Block::new(&self.pending, &mut self.packed);
        while self.ages && !self.has_room(&block) && self.age() {}
        if !self.has_room(&block) {
            self.overflown_at = Some(self.rows() - self.pending.len() as u64);
            self.blocks = VecDeque::new();
            self.pending = Vec::new();
            self.packed = Vec::new();
            self.bytes = 0;
            return;
        }
        self.bytes += block.bytes();
        self.blocks.push_back(block);
        self.pending.clear();
    }

    fn has_room(&self, block: &Block) -> bool {
        // A full list of blocks doubles.
        let grown = match self.blocks.len() == self.blocks.capacity() {
            true => self.blocks.len().max(4) * size_of::<Block>(),
            false => 0,
        };
        // Equal requests occupy no bytes, but scanning them for each query takes time.
        let rows = (self.blocks.len() * ROWS_MAX).saturating_add(block.rows());
        rows.saturating_mul(ROW_BYTES_MIN) <= self.bytes_max
            && self.memory_bytes() + block.bytes() + grown <= self.bytes_max
    }

    /// Drops the oldest block. Returns false if there is none.
    fn age(&mut self) -> bool {
        let Some(oldest) = self.blocks.pop_front() else {
            return false;
        };
        self.bytes -= oldest.bytes();
        self.aged += oldest.rows() as u64;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{ROWS_MAX, Row, Store};

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
    fn rows_are_returned_in_order_from_full_and_partial_blocks() {
        let mut store = Store::new(1 << 20, false);
        let expected: Vec<Row> = (0..ROWS_MAX * 2 + 77).map(row).collect();
        for (count, row) in expected.iter().enumerate() {
            if [0, 1, ROWS_MAX, ROWS_MAX + 1].contains(&count) {
                assert_eq!(rows(&store), expected[..count]);
            }
            store.extend(&[*row]);
        }
        assert_eq!(rows(&store), expected);
        let summary = store.summary();
        assert_eq!(summary.requests, expected.len() as u64);
        assert!(summary.complete && summary.bytes < 1 << 20);
    }

    #[test]
    fn exceeding_the_number_of_blocks_drops_all_rows() {
        let mut full = Store::new(1 << 20, false);
        let mut count = 0;
        while full.overflown_at().is_none() {
            assert!(full.memory_bytes() <= 1 << 20);
            full.extend(&[row(count)]);
            count += 1;
        }
        assert_eq!(full.overflown_at(), Some((count - ROWS_MAX) as u64));
        assert_eq!((full.memory_bytes(), rows(&full).len()), (0, 0));
        full.extend(&[row(0)]);
        let summary = full.summary();
        assert_eq!((summary.requests, summary.complete), (0, false));
        assert_eq!(summary.bytes_max, 1 << 20);
    }

    #[test]
    fn the_number_of_rows_without_bytes_is_limited() {
        const BYTES_MAX: usize = 512 << 10;
        let rows_max = BYTES_MAX / super::ROW_BYTES_MIN;
        let some = vec![row(0); ROWS_MAX];
        let mut store = Store::new(BYTES_MAX, false);
        for _ in 0..rows_max / ROWS_MAX {
            store.extend(&some);
        }
        assert_eq!(store.rows(), rows_max as u64);
        assert_eq!(store.overflown_at(), None);
        store.extend(&some);
        assert_eq!(store.overflown_at(), Some(rows_max as u64));
    }

    #[test]
    fn oldest_rows_are_dropped_if_configured() {
        let mut store = Store::new(1 << 20, true);
        let count = ROWS_MAX * 60 + 7;
        for n in 0..count {
            store.extend(&[row(n)]);
            assert!(store.memory_bytes() <= 1 << 20);
        }
        let aged = store.aged() as usize;
        assert!(aged > 0 && aged.is_multiple_of(ROWS_MAX), "{aged}");
        let expected: Vec<Row> = (aged..count).map(row).collect();
        assert_eq!(rows(&store), expected);
        let summary = store.summary();
        assert_eq!(summary.requests as usize, count - aged);
        assert_eq!(
            (summary.complete, summary.since),
            (false, Some(row(aged).time))
        );
        assert_eq!(store.overflown_at(), None);
    }

    #[test]
    fn store_too_small_for_one_block_drops_all_rows() {
        let mut store = Store::new(100, true);
        (0..ROWS_MAX).for_each(|n| store.extend(&[row(n)]));
        assert_eq!(store.overflown_at(), Some(0));
    }
}
