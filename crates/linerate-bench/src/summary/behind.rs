//! The cells in which linerate is not first.

use crate::summary::cell::{CellSummary, Standing};
use crate::summary::{OURS, Summary};

/// A cell in which linerate is not first.
#[derive(Clone, Copy, Debug)]
pub struct Behind<'a> {
    /// The cell.
    pub cell: &'a CellSummary,
    /// linerate in it.
    pub ours: &'a Standing,
    /// Who is first.
    pub first: &'a Standing,
    /// How far ahead; `None` if linerate has no figure.
    pub lead: Option<Lead>,
}

/// How far the first is ahead of linerate.
#[derive(Clone, Copy, Debug)]
pub struct Lead {
    /// How many times as good the first one's median is: above 1.
    pub factor: f64,
    /// linerate's rank.
    pub rank: usize,
    /// Whether every round of the first is better than every round of linerate.
    pub is_clear: bool,
}

impl Summary {
    /// Returns the cells in which linerate had a turn and another is first, in the order of the
    /// record. A bare TCP echo is nobody's rival.
    pub fn behind(&self) -> Vec<Behind<'_>> {
        self.cells().filter_map(behind).collect()
    }
}

fn behind(cell: &CellSummary) -> Option<Behind<'_>> {
    let ours = cell.standing(OURS)?;
    let first = cell.first().filter(|it| it.contender != OURS)?;
    let lead = ours.headline.zip(first.headline).zip(ours.rank);
    let lead = lead.map(|((own, best), rank)| Lead {
        factor: cell.metric.ratio(best.median, own.median),
        rank,
        is_clear: best.is_apart_from(&own),
    });
    Some(Behind {
        cell,
        ours,
        first,
        lead,
    })
}
