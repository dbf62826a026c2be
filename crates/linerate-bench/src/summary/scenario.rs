//! Scenarios as a whole: geometric means of ratios.

use crate::record::ScenarioNote;
use crate::summary::REFERENCE;
use crate::summary::cell::{CellSummary, Standing};
use crate::summary::metric::Metric;
use crate::summary::spread::geometric_mean;

/// What came of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioSummary {
    /// What it is.
    pub note: ScenarioNote,
    /// Its cells, in the order of the record.
    pub cells: Vec<CellSummary>,
    /// What the means are shares of.
    pub base: Base,
}

/// What the ratios of a mean are to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Base {
    /// To the first of each cell: where `raw-tcp` can't take part, and where memory is compared, of
    /// which a bare socket needs next to none.
    First,
    /// To `raw-tcp`.
    RawTcp,
}

/// The geometric mean of a contender's ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// How many times as good as the base.
    pub ratio: f64,
    /// Cells (for the mean of all scenarios: scenarios) that it is the mean of.
    pub count: usize,
    /// Cells (scenarios) that it could be the mean of.
    pub of: usize,
}

impl ScenarioSummary {
    pub(super) fn new(note: ScenarioNote, cells: Vec<CellSummary>) -> Self {
        let mut summary = Self {
            note,
            cells,
            base: Base::First,
        };
        let has_reference = summary.compared().any(|cell| {
            cell.metric != Metric::BytesPerConnection
                && cell
                    .standings
                    .iter()
                    .any(|it| it.contender != REFERENCE && it.to_reference.is_some())
        });
        if has_reference {
            summary.base = Base::RawTcp;
        }
        summary
    }

    /// Returns the mean of a contender's ratios, `None` if it has no figure that counts, and for
    /// `raw-tcp` beside a base that it has no part in. Cells that
    /// compare latency have a part in it only where a scenario compares nothing else: how late the
    /// last of a hundred messages is says little about cost.
    pub fn mean(&self, contender: &str) -> Option<Mean> {
        if self.base == Base::First && contender == REFERENCE {
            return None;
        }
        let ratio = |standing: &Standing| match self.base {
            Base::First => standing.to_first,
            Base::RawTcp => standing.to_reference,
        };
        let based = |cell: &&CellSummary| cell.standings.iter().any(|it| ratio(it).is_some());
        let ratios: Vec<f64> = self
            .compared()
            .filter_map(|cell| ratio(cell.standing(contender)?))
            .collect();
        Some(Mean {
            ratio: geometric_mean(&ratios)?,
            count: ratios.len(),
            of: self.compared().filter(based).count(),
        })
    }

    /// Returns whether its mean is part of the mean over all scenarios: where the bare echo is no bound, a ratio
    /// above 1 says how little it gathers, and nothing about what a WebSocket costs.
    pub fn is_bounded(&self) -> bool {
        self.compared().all(CellSummary::is_bounded)
    }

    /// Returns the cells that means are taken of.
    fn compared(&self) -> impl Iterator<Item = &CellSummary> {
        let is_latency = |cell: &CellSummary| cell.metric == Metric::LatencyP99;
        let all_latency = self.cells.iter().all(is_latency);
        let cells = self.cells.iter();
        cells.filter(move |cell| all_latency || !is_latency(cell))
    }
}
