//! The geometric means of ratios over the cells of a scenario.

use crate::record::ScenarioNote;
use crate::summary::REFERENCE;
use crate::summary::cell::{CellSummary, Standing};
use crate::summary::metric::Metric;
use crate::summary::spread::geometric_mean;

/// The results of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioSummary {
    /// Description of the scenario.
    pub note: ScenarioNote,
    /// Its cells, in the order of the record.
    pub cells: Vec<CellSummary>,
    /// What its ratios are relative to.
    pub base: Base,
}

/// What the ratios of a mean are relative to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Base {
    /// The first contender of each cell. Used where `raw-tcp` cannot take part, and where memory is
    /// compared, because a bare socket needs almost none.
    First,
    /// The reference, `raw-tcp`.
    RawTcp,
}

/// The geometric mean of a contender's ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// How many times as good as the base the contender is.
    pub ratio: f64,
    /// Number of cells (in an overall mean: scenarios) that the mean is taken of.
    pub count: usize,
    /// Number of cells (scenarios) that it could be taken of.
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

    /// Returns the mean of a contender's ratios. Returns `None` if the contender has no figure that
    /// counts, and for `raw-tcp` if it is not the base.
    ///
    /// Cells that compare latency are left out unless the scenario has no others, because the 99th
    /// percentile of latency says little about cost.
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

    /// Returns whether the scenario's mean is part of the mean over all scenarios. Where the bare
    /// echo is not an upper bound, a ratio above 1 says how little the bare echo combines writes,
    /// and nothing about the cost of a WebSocket.
    pub fn is_bounded(&self) -> bool {
        self.compared().all(CellSummary::is_bounded)
    }

    /// Returns the cells over which means are taken.
    fn compared(&self) -> impl Iterator<Item = &CellSummary> {
        let is_latency = |cell: &CellSummary| cell.metric == Metric::LatencyP99;
        let all_latency = self.cells.iter().all(is_latency);
        let cells = self.cells.iter();
        cells.filter(move |cell| all_latency || !is_latency(cell))
    }
}
