//! The cells in which no server of linerate is first, including those in which [the load was too
//! slow](CellSummary::is_load_bound) to determine a first: a measured loss is a loss.

use crate::summary::cell::{CellSummary, Standing};
use crate::summary::{REFERENCE, Summary, is_ours};

/// A cell in which no server of linerate is first.
#[derive(Clone, Copy, Debug)]
pub struct LostCell<'a> {
    /// The cell.
    pub cell: &'a CellSummary,
    /// The better standing of the two kinds of linerate servers in the cell.
    pub ours: &'a Standing,
    /// The contender with the best figure.
    pub first: &'a Standing,
    /// How far the first is ahead; `None` if no server of linerate has a figure.
    pub lead: Option<Lead>,
}

/// How far the first is ahead of linerate.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// How many times as good the median of the first is: above 1.
    pub factor: f64,
    /// Rank of linerate's server among those that were measured.
    pub rank: usize,
    /// True if every round of the first is better than every round of linerate's server.
    pub is_clear: bool,
}

impl Summary {
    /// Returns the cells in which linerate had a turn and another contender has the best figure, in
    /// the order of the record. The bare TCP echo does not count as a rival.
    pub fn lost_cells(&self) -> Vec<LostCell<'_>> {
        self.cells().filter_map(behind).collect()
    }
}

fn behind(cell: &CellSummary) -> Option<LostCell<'_>> {
    let ours = cell.ours()?;
    let first = cell.best_measured().filter(|it| !is_ours(&it.contender))?;
    let rivals = cell.counted().filter(|it| it.contender != REFERENCE);
    let ahead = rivals
        .take_while(|it| it.contender != ours.contender)
        .count();
    let lead = ours.headline.zip(first.headline);
    let lead = lead.map(|(own, best)| Lead {
        factor: cell.metric.ratio(best.median, own.median),
        rank: ahead + 1,
        is_clear: best.is_apart_from(&own),
    });
    Some(LostCell {
        cell,
        ours,
        first,
        lead,
    })
}
