//! Going through the requests that a query chooses.

use super::row::Row;
use crate::query::filter::{Filter, Test};
use crate::store::{Block, COLUMNS, Store};

/// Calls `each` with every request that is chosen, and its number among all, from 0.
pub(super) fn scan(store: &Store, filter: &Filter, mut each: impl FnMut(u64, &Row)) {
    let mut lists = Lists::default();
    let mut before = store.aged();
    for block in store.blocks() {
        if may_have_any(&block, filter) {
            lists.choose(&block, filter);
            lists.for_each(&block, |at, row| each(before + u64::from(at), row));
        }
        before += block.rows() as u64;
    }
}

/// Says whether the heads of the columns leave it open that a request of the block is chosen.
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

/// What is known of the present block.
#[derive(Default)]
struct Lists {
    /// Which requests are chosen.
    chosen: Vec<u32>,
    columns: Columns,
    times: Vec<i64>,
    rows: Vec<Row>,
}

impl Lists {
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

    /// Calls `each` with the requests that are chosen.
    fn for_each(&mut self, block: &Block, mut each: impl FnMut(u32, &Row)) {
        /// Reading one request costs as much as so many of all.
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

/// Keeps the requests for which a test is true.
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
            // Each test is asked for the requests for which those before are false.
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

/// The columns of the present block that were read, each once.
#[derive(Default)]
struct Columns {
    is_read: [bool; COLUMNS],
    codes: [Vec<u32>; COLUMNS],
    numbers: [Vec<u64>; COLUMNS],
}

impl Columns {
    /// Makes ready for another block.
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
