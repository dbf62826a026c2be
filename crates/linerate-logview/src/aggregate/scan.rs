//! Going through the requests that a query chooses.

use super::row::Row;
use crate::query::filter::Filter;
use crate::store::{Block, Store};

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
        && filter.sets.iter().all(|(column, set)| {
            let column = block.column(*column);
            set.has_any(column.lowest, column.highest)
        })
}

/// What is known of the present block.
#[derive(Default)]
struct Lists {
    /// Which requests are chosen.
    chosen: Vec<u32>,
    codes: Vec<u32>,
    times: Vec<i64>,
    rows: Vec<Row>,
}

impl Lists {
    fn choose(&mut self, block: &Block, filter: &Filter) {
        let Self {
            chosen,
            codes,
            times,
            ..
        } = self;
        chosen.clear();
        chosen.extend(0..block.rows() as u32);
        for (column, set) in &filter.sets {
            block.read_codes(*column, codes);
            chosen.retain(|&at| set.has(codes[at as usize]));
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
