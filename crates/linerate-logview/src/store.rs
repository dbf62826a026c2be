//! The requests of a log as columns of small numbers, from which queries are answered.
//!
//! A value is stored as its code in a dictionary. Every 4,096 requests form a block, in which each
//! column uses only the bits that the difference between its highest and lowest number needs: about
//! ten bytes for a request whose log line has 250. Blocks that do not fit into memory are written
//! to a temporary file, except for their headers.

mod bits;
mod block;
mod line_search;
mod lines;

pub(crate) use block::ROWS_MAX as BLOCK_ROWS;
use block::ROWS_MAX;
pub(crate) use block::{ADDRESS, AGENT, BYTES_SENT, Block, COLUMNS, DURATION, HOST, METHOD};
pub(crate) use block::{PATH, REFERRER, Row, STATUS, TEXTS, TIME};
pub(crate) use line_search::LineSearch;
pub(crate) use lines::LineStore;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::spill::{SpillError, SpillFile, SpillSpace};
use crate::summary::Filterable;

/// The least that a request counts for, in bytes, so that with 40 MiB a query scans at most about
/// ten million requests.
const ROW_BYTES_MIN: usize = 4;

/// Stores requests in a bounded number of bytes.
///
/// When they no longer fit, the oldest are moved to a file if there is space for it. When they do
/// not fit there either, all of them are dropped, because an answer from a part would be wrong. If
/// `ages` is set, the oldest are dropped to make space for the newest instead.
#[derive(Debug)]
pub(crate) struct Store {
    blocks: VecDeque<Block>,
    /// The requests that do not fill a block yet.
    pending: Vec<Row>,
    /// The buffer in which blocks are packed.
    packed: Vec<u8>,
    /// The bytes of all blocks.
    bytes: usize,
    /// How many of the blocks, from the first one, are in the file.
    spilled: usize,
    file: Option<SpillFile>,
    /// The space for the file, if one may be used.
    space: Option<Arc<SpillSpace>>,
    overflow: Option<StoreOverflow>,
    bytes_max: usize,
    /// True if the oldest requests are dropped for the newest.
    ages: bool,
    /// How many requests were dropped that way.
    aged: u64,
}

/// Why all requests were dropped.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct StoreOverflow {
    /// How many requests were stored when that happened.
    pub(crate) requests: u64,
    /// What prevented the use of a file; `None` if there is only memory, or too little of it.
    pub(crate) spill: Option<SpillError>,
}

impl Store {
    /// Creates a store of up to `bytes_max` bytes of memory, and of a file in `space`. With `ages`,
    /// no file is used.
    pub(crate) fn new(bytes_max: usize, ages: bool, space: Option<Arc<SpillSpace>>) -> Self {
        Self {
            blocks: VecDeque::new(),
            pending: Vec::new(),
            packed: Vec::new(),
            bytes: 0,
            spilled: 0,
            file: None,
            space: space.filter(|_| !ages),
            overflow: None,
            bytes_max,
            ages,
            aged: 0,
        }
    }

    /// Stores requests.
    pub(crate) fn extend(&mut self, mut rows: &[Row]) {
        while !rows.is_empty() && self.overflow.is_none() {
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
    /// They must be [loaded](Self::load) before anything but their headers is used.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Cow<'_, Block>> {
        let pending = (!self.pending.is_empty())
            .then(|| Cow::Owned(Block::new(&self.pending, &mut Vec::new())));
        self.blocks.iter().map(Cow::Borrowed).chain(pending)
    }

    /// Returns a block with its columns, which are read from the file if necessary.
    pub(crate) fn load<'a>(&self, block: Cow<'a, Block>) -> Result<Cow<'a, Block>, SpillError> {
        let (Some(extent), Some(file)) = (block.spilled(), &self.file) else {
            return Ok(block);
        };
        let mut content = vec![0; extent.bytes].into_boxed_slice();
        file.read(extent.at, &mut content)?;
        Ok(Cow::Owned(block.with_content(content)))
    }

    /// Returns why all requests were dropped, or `None` if they are stored.
    pub(crate) fn overflow(&self) -> Option<&StoreOverflow> {
        self.overflow.as_ref()
    }

    /// Returns the numbers of the stored requests among all requests, from 0.
    pub(crate) fn stored(&self) -> Range<u64> {
        self.aged..self.aged + self.rows()
    }

    /// Returns how many requests came before those that are stored.
    pub(crate) fn aged(&self) -> u64 {
        self.aged
    }

    /// Returns how many bytes of the requests are in a file.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, SpillFile::bytes)
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn summary(&self) -> Filterable {
        Filterable {
            requests: self.rows(),
            bytes: self.memory_bytes() as u64,
            bytes_max: self.bytes_max as u64,
            complete: self.overflow.is_none() && self.aged == 0,
            since: self.since(),
            refusal: None,
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
        match self.make_room(&block) {
            Ok(true) => {
                self.bytes += block.bytes();
                self.blocks.push_back(block);
                self.pending.clear();
            }
            Ok(false) => self.drop_all(None),
            Err(error) => self.drop_all(Some(error)),
        }
    }

    fn drop_all(&mut self, spill: Option<SpillError>) {
        self.overflow = Some(StoreOverflow {
            requests: self.rows() - self.pending.len() as u64,
            spill,
        });
        self.blocks = VecDeque::new();
        self.pending = Vec::new();
        self.packed = Vec::new();
        self.bytes = 0;
        self.spilled = 0;
        self.file = None;
    }

    /// Drops the oldest blocks or moves them to the file until a new one fits. Returns false if it
    /// can't fit.
    fn make_room(&mut self, block: &Block) -> Result<bool, SpillError> {
        // Equal requests occupy no bytes, but scanning them for each query takes time.
        let space = self.space.as_ref().map_or(0, |space| space.bytes_max());
        let bytes_max = (self.bytes_max as u64).saturating_add(space);
        let may_scan = |blocks: usize| (blocks * ROWS_MAX * ROW_BYTES_MIN) as u64 <= bytes_max;
        while !may_scan(self.blocks.len() + 1) || !self.has_room(block) {
            let is_smaller = match self.ages {
                true => self.age(),
                false => may_scan(self.blocks.len() + 1) && self.spill_oldest()?,
            };
            if !is_smaller {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn has_room(&self, block: &Block) -> bool {
        // A full list of blocks doubles.
        let grown = match self.blocks.len() == self.blocks.capacity() {
            true => self.blocks.len().max(4) * size_of::<Block>(),
            false => 0,
        };
        self.memory_bytes() + block.bytes() + grown <= self.bytes_max
    }

    /// Moves the oldest block that is in memory to the file. Returns false if there is none, or no
    /// space for files.
    fn spill_oldest(&mut self) -> Result<bool, SpillError> {
        let (Some(space), Some(block)) = (&self.space, self.blocks.get_mut(self.spilled)) else {
            return Ok(false);
        };
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SpillFile::create(space)?),
        };
        let at = file.append(block.content())?;
        self.bytes -= block.bytes();
        self.spilled += 1;
        block.unload(at);
        Ok(true)
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
    use std::sync::Arc;

    use super::{ROWS_MAX, Row, Store};
    use crate::spill::{SpillError, SpillSpace};

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
            let block = store.load(block).unwrap();
            (0..block.rows()).for_each(|at| rows.push(block.row(at)));
        }
        rows
    }

    /// Returns how many requests were stored when the limit was exceeded.
    fn overflow(store: &Store) -> Option<u64> {
        store.overflow().map(|it| it.requests)
    }

    fn space(folder: &tempfile::TempDir, bytes_max: u64) -> Arc<SpillSpace> {
        let directory = folder.path().to_owned();
        Arc::new(SpillSpace::new(directory, bytes_max, "the limit"))
    }

    #[test]
    fn rows_that_do_not_fit_into_memory_are_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(&folder, 64 << 20);
        let mut store = Store::new(512 << 10, false, Some(space.clone()));
        let expected: Vec<Row> = (0..ROWS_MAX * 300 + 7).map(row).collect();
        for some in expected.chunks(1_000) {
            store.extend(some);
            assert!(store.memory_bytes() <= 512 << 10);
        }
        assert!(space.used() > 4 << 20, "{}", space.used());
        assert_eq!(rows(&store), expected);
        assert!(store.summary().complete);
        drop(store);
        assert_eq!(space.used(), 0);
    }

    #[test]
    fn all_rows_are_dropped_when_the_file_reaches_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(&folder, 1 << 20);
        let mut store = Store::new(512 << 10, false, Some(space.clone()));
        let mut count = 0;
        while store.overflow().is_none() {
            store.extend(&[row(count)]);
            count += 1;
        }
        let overflow = store.overflow().unwrap();
        assert_eq!(overflow.requests, (count - ROWS_MAX) as u64);
        let full = SpillError::Full {
            bytes_max: 1 << 20,
            setting: "the limit",
        };
        assert_eq!(overflow.spill, Some(full));
        assert_eq!((store.memory_bytes(), space.used()), (0, 0));
    }

    #[test]
    fn a_log_that_ages_uses_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let space = space(&folder, 64 << 20);
        let mut store = Store::new(512 << 10, true, Some(space.clone()));
        (0..ROWS_MAX * 100).for_each(|n| store.extend(&[row(n)]));
        assert_eq!((space.used(), store.aged() > 0), (0, true));
    }

    #[test]
    fn rows_are_returned_in_order_from_full_and_partial_blocks() {
        let mut store = Store::new(1 << 20, false, None);
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
        let mut full = Store::new(1 << 20, false, None);
        let mut count = 0;
        while full.overflow().is_none() {
            assert!(full.memory_bytes() <= 1 << 20);
            full.extend(&[row(count)]);
            count += 1;
        }
        assert_eq!(overflow(&full), Some((count - ROWS_MAX) as u64));
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
        let mut store = Store::new(BYTES_MAX, false, None);
        for _ in 0..rows_max / ROWS_MAX {
            store.extend(&some);
        }
        assert_eq!(store.rows(), rows_max as u64);
        assert_eq!(overflow(&store), None);
        store.extend(&some);
        assert_eq!(overflow(&store), Some(rows_max as u64));
    }

    #[test]
    fn oldest_rows_are_dropped_if_configured() {
        let mut store = Store::new(1 << 20, true, None);
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
        assert_eq!(overflow(&store), None);
    }

    #[test]
    fn store_too_small_for_one_block_drops_all_rows() {
        let mut store = Store::new(100, true, None);
        (0..ROWS_MAX).for_each(|n| store.extend(&[row(n)]));
        assert_eq!(overflow(&store), Some(0));
    }
}
