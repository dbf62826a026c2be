//! Summaries: the figures that the measurements of a record add up to.
//!
//! Only rounds that count enter a figure. A contender has no figure in a cell if it failed in any
//! round, or if the load generator was the bottleneck in at least half of its rounds. A cell with a
//! contender of the latter kind has no first, because it is unknown which contender that would be.
//! Ratios are above 1 where a contender is better, whether or not more is better.

mod behind;
mod cell;
mod medians;
mod metric;
mod scenario;
mod spread;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{HashMap, HashSet};

use crate::record::{Measurement, Record, ScenarioNote};

pub use behind::{Lead, LostCell};
pub use cell::{CellSummary, Standing, Status};
pub use medians::Medians;
pub use metric::Metric;
pub use scenario::{Base, Mean, ScenarioSummary};
pub use spread::Spread;

use spread::geometric_mean;

/// The contenders that this repository provides: the library on tokio, and the callback server.
/// They are not ranked as rivals of each other.
pub const OURS: [&str; 3] = ["linerate", "linerate-reactor", "linerate-reactor-io-uring"];

/// The contender that all others are compared with: it moves the same bytes without WebSocket.
pub const REFERENCE: &str = "raw-tcp";

/// Returns whether a contender is one of [`OURS`].
pub fn is_ours(contender: &str) -> bool {
    OURS.contains(&contender)
}

/// The summary of a record.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Scenarios with at least one cell, in the order of the record.
    pub scenarios: Vec<ScenarioSummary>,
    /// All contenders that had a turn: first the reference, then the others by their overall means,
    /// best first, then those without a mean.
    pub contenders: Vec<String>,
}

impl Summary {
    /// Summarises a record. Cells whose scenario the record does not describe go under a scenario
    /// without a text. If a cell was announced twice, as in the record of a resumed run, the first
    /// announcement counts.
    pub fn of(record: &Record) -> Self {
        let mut by_cell: HashMap<&str, Vec<&Measurement>> = HashMap::new();
        for measurement in &record.measurements {
            by_cell
                .entry(&measurement.cell)
                .or_default()
                .push(measurement);
        }
        let mut notes = record.run.scenarios.clone();
        for cell in &record.cells {
            if notes.iter().all(|note| note.name != cell.scenario) {
                notes.push(ScenarioNote {
                    name: cell.scenario.clone(),
                    title: cell.scenario.clone(),
                    about: String::new(),
                    rounds: record.run.rounds,
                });
            }
        }
        let mut seen = HashSet::new();
        let mut summarise = |note: ScenarioNote| {
            let cells: Vec<CellSummary> = record
                .cells
                .iter()
                .filter(|cell| cell.scenario == note.name && seen.insert(cell.id()))
                .map(|cell| {
                    let measurements = by_cell.get(cell.id().as_str());
                    CellSummary::of(cell, measurements.map_or(&[], Vec::as_slice))
                })
                .collect();
            (!cells.is_empty()).then(|| ScenarioSummary::new(note, cells))
        };
        let mut summary = Self {
            scenarios: notes.into_iter().filter_map(&mut summarise).collect(),
            contenders: Vec::new(),
        };
        summary.contenders = summary.ordered_contenders();
        summary
    }

    /// Returns all cells, in the order of the report.
    pub fn cells(&self) -> impl Iterator<Item = &CellSummary> {
        self.scenarios.iter().flat_map(|scenario| &scenario.cells)
    }

    /// Returns the geometric mean of a contender's scenario means. Each scenario has the same
    /// weight, however many cells it has. Scenarios with another base are left out, as are those in
    /// which [the bare echo is not an upper bound](ScenarioSummary::is_bounded).
    pub fn overall(&self, contender: &str, base: Base) -> Option<Mean> {
        let based = || {
            let scenarios = self.scenarios.iter();
            scenarios.filter(|it| it.base == base && it.is_bounded())
        };
        let ratios: Vec<f64> = based()
            .filter_map(|scenario| Some(scenario.mean(contender)?.ratio))
            .collect();
        Some(Mean {
            ratio: geometric_mean(&ratios)?,
            count: ratios.len(),
            of: based().count(),
        })
    }

    fn ordered_contenders(&self) -> Vec<String> {
        let mut names: Vec<&str> = self
            .cells()
            .flat_map(|cell| &cell.standings)
            .map(|standing| standing.contender.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut keyed: Vec<(bool, f64, &str)> = names
            .into_iter()
            .map(|name| {
                let mean = self.overall(name, Base::RawTcp);
                let mean = mean.or_else(|| self.overall(name, Base::First));
                (name == REFERENCE, mean.map_or(0.0, |mean| mean.ratio), name)
            })
            .collect();
        keyed.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        keyed.into_iter().map(|(_, _, name)| name.into()).collect()
    }
}
