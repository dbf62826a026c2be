//! Scans the requests that a query selects.

use std::ops::Range;

use super::filter::{Filter, Test};
use crate::spill::SpillError;
use crate::store::{BLOCK_ROWS, Block, COLUMNS, Row, Store};

/// Calls `each` with every selected request of those with the numbers `within`, and its number
/// among all requests, from 0. Requests that have been dropped since are left out.
///
/// # Errors
/// Returns an error if requests are in a file that cannot be read.
pub(super) fn scan(
    store: &Store,
    filter: &Filter,
    within: Range<u64>,
    mut each: impl FnMut(u64, &Row),
) -> Result<(), SpillError> {
    for_each_block(store, filter, within, |lists, block, before, within| {
        lists.for_each(block, |at, row| {
            let number = before + u64::from(at);
            if within.contains(&number) {
                each(number, row);
            }
        });
    })
}

/// Calls `each` with the code in a column and the time of every selected request of those with the
/// numbers `within`, as [`scan`] does with all columns.
///
/// # Errors
/// Returns an error if requests are in a file that cannot be read.
pub(super) fn scan_codes(
    store: &Store,
    filter: &Filter,
    within: Range<u64>,
    column: usize,
    mut each: impl FnMut(u32, i64),
) -> Result<(), SpillError> {
    for_each_block(store, filter, within, |lists, block, before, within| {
        let ScanBuffers {
            chosen,
            columns,
            times,
            ..
        } = lists;
        if chosen.is_empty() {
            return;
        }
        let codes = columns.codes(column, block);
        for &at in &*chosen {
            if within.contains(&(before + u64::from(at))) {
                each(codes[at as usize], times[at as usize]);
            }
        }
    })
}

/// Calls `each` with the blocks that may have selected requests: what is chosen of each block, and
/// the number of its first request.
fn for_each_block(
    store: &Store,
    filter: &Filter,
    within: Range<u64>,
    mut each: impl FnMut(&mut ScanBuffers, &Block, u64, &Range<u64>),
) -> Result<(), SpillError> {
    let mut lists = ScanBuffers::default();
    // All blocks but the last one are full.
    let skipped = within.start.saturating_sub(store.aged()) / BLOCK_ROWS as u64;
    let mut before = store.aged() + skipped * BLOCK_ROWS as u64;
    for block in store.blocks().skip(skipped as usize) {
        if before >= within.end {
            break;
        }
        let rows = block.rows() as u64;
        if may_have_any(&block, filter) {
            let block = store.load(block)?;
            lists.choose(&block, filter);
            each(&mut lists, &block, before, &within);
        }
        before += rows;
    }
    Ok(())
}

/// Returns false if the column headers prove that no request of the block is selected.
fn may_have_any(block: &Block, filter: &Filter) -> bool {
    let (first, last) = block.times();
    first <= filter.last
        && last >= filter.from
        && filter.tests.iter().all(|test| may_be_true(test, block))
}

fn may_be_true(test: &Test, block: &Block) -> bool {
    match test {
        Test::All(tests) => tests.iter().all(|test| may_be_true(test, block)),
        Test::Any(tests) => tests.iter().any(|test| may_be_true(test, block)),
        Test::Codes(column, set) => {
            let column = block.column(*column);
            set.has_any(column.lowest, column.highest)
        }
        Test::Constant(is_true) => *is_true,
        Test::Numbers(column, numbers) => {
            let column = block.column(*column);
            numbers.has_any(column.lowest, column.highest)
        }
    }
}

/// What was read from the present block. The lists are reused.
#[derive(Default)]
struct ScanBuffers {
    /// The indices of the selected requests.
    chosen: Vec<u32>,
    columns: Columns,
    times: Vec<i64>,
    rows: Vec<Row>,
}

impl ScanBuffers {
    fn choose(&mut self, block: &Block, filter: &Filter) {
        let Self {
            chosen,
            columns,
            times,
            ..
        } = self;
        chosen.clear();
        chosen.extend(0..block.rows() as u32);
        columns.forget();
        for test in &filter.tests {
            retain(test, block, columns, chosen);
        }
        if chosen.is_empty() {
            return;
        }
        block.read_times(times);
        let (first, last) = block.times();
        if first < filter.from || last > filter.last {
            chosen.retain(|&at| (filter.from..=filter.last).contains(&times[at as usize]));
        }
    }

    /// Calls `each` with the selected requests.
    fn for_each(&mut self, block: &Block, mut each: impl FnMut(u32, &Row)) {
        /// Reading one request on its own costs as much as reading this many together.
        const ONE_BY_ONE: usize = 4;
        if self.chosen.len() * ONE_BY_ONE < block.rows() {
            for &at in &self.chosen {
                each(at, &block.row_at(at as usize, self.times[at as usize]));
            }
            return;
        }
        block.read_rows(&self.times, &mut self.rows);
        for &at in &self.chosen {
            each(at, &self.rows[at as usize]);
        }
    }
}

/// Keeps only the requests for which a test is true.
fn retain(test: &Test, block: &Block, columns: &mut Columns, chosen: &mut Vec<u32>) {
    if chosen.is_empty() {
        return;
    }
    match test {
        Test::All(tests) => {
            for test in tests {
                retain(test, block, columns, chosen);
            }
        }
        Test::Any(tests) => {
            // Each test is applied only to the requests for which the previous ones are false.
            let mut is_true = vec![false; block.rows()];
            let mut rest = chosen.clone();
            let mut found = Vec::new();
            for test in tests {
                found.clone_from(&rest);
                retain(test, block, columns, &mut found);
                found.iter().for_each(|&at| is_true[at as usize] = true);
                rest.retain(|&at| !is_true[at as usize]);
            }
            chosen.retain(|&at| is_true[at as usize]);
        }
        Test::Codes(column, set) => {
            let codes = columns.codes(*column, block);
            chosen.retain(|&at| set.has(codes[at as usize]));
        }
        Test::Constant(true) => {}
        Test::Constant(false) => chosen.clear(),
        Test::Numbers(column, ranges) => {
            let numbers = columns.numbers(*column, block);
            chosen.retain(|&at| ranges.has(numbers[at as usize]));
        }
    }
}

/// The columns of the present block that were read, each at most once.
#[derive(Default)]
struct Columns {
    is_read: [bool; COLUMNS],
    codes: [Vec<u32>; COLUMNS],
    numbers: [Vec<u64>; COLUMNS],
}

impl Columns {
    /// Prepares for another block.
    fn forget(&mut self) {
        self.is_read = [false; COLUMNS];
    }

    fn codes(&mut self, column: usize, block: &Block) -> &[u32] {
        if !std::mem::replace(&mut self.is_read[column], true) {
            block.read_codes(column, &mut self.codes[column]);
        }
        &self.codes[column]
    }

    fn numbers(&mut self, column: usize, block: &Block) -> &[u64] {
        if !std::mem::replace(&mut self.is_read[column], true) {
            block.read_numbers(column, &mut self.numbers[column]);
        }
        &self.numbers[column]
    }
}
