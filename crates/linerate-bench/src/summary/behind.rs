//! The cells in which none of ours is first, also where [the load was too slow](CellSummary::is_load_bound) to say who is:
//! a loss that was measured is a loss.

use crate::summary::cell::{CellSummary, Standing};
use crate::summary::{REFERENCE, Summary, is_ours};

/// A cell in which none of ours is first.
#[derive(Clone, Copy, Debug)]
pub struct Behind<'a> {
    /// The cell.
    pub cell: &'a CellSummary,
    /// The better one of ours in it.
    pub ours: &'a Standing,
    /// Who has the best figure.
    pub first: &'a Standing,
    /// How far ahead; `None` if none of ours has a figure.
    pub lead: Option<Lead>,
}

/// How far the first is ahead of ours.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// How many times as good the first one's median is: above 1.
    pub factor: f64,
    /// The rank of ours among those that were measured.
    pub rank: usize,
    /// Whether every round of the first is better than every round of ours.
    pub is_clear: bool,
}

impl Summary {
    /// Returns the cells in which one of ours had a turn and another has the best figure, in the order of the
    /// record. A bare TCP echo is nobody's rival.
    pub fn behind(&self) -> Vec<Behind<'_>> {
        self.cells().filter_map(behind).collect()
    }
}

fn behind(cell: &CellSummary) -> Option<Behind<'_>> {
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
    Some(Behind {
        cell,
        ours,
        first,
        lead,
    })
}
