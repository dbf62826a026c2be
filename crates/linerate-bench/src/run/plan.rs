//! Plans: which cells are measured, how often and for how long.

use thiserror::Error;

use crate::cell::Cell;
use crate::load::Budget;
use crate::record::{Record, ScenarioNote};
use crate::scenario::{Effort, Scenario};

/// What is measured.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The cells, in the order of the run.
    pub cells: Vec<PlannedCell>,
    /// Duration of each measurement.
    pub budget: Budget,
    /// Descriptions of the scenarios for a record.
    pub scenarios: Vec<ScenarioNote>,
}

/// A cell that is about to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCell {
    /// The cell.
    pub cell: Cell,
    /// How often each contender is measured in it.
    pub rounds: u32,
}

/// The scenarios and cells to measure. An empty list selects all.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Names of scenarios.
    pub scenarios: Vec<String>,
    /// Parts of the ids of cells, `scenario/cell`.
    pub cells: Vec<String>,
}

impl Plan {
    /// Plans the cells that the effort includes and the selection matches. If the selection names
    /// cells, it chooses from all of them, including those that the effort leaves out.
    ///
    /// # Errors
    ///
    /// Returns an error if the selection names a scenario that does not exist, or a part that
    /// matches no cell.
    pub fn new(
        scenarios: &[Scenario],
        effort: Effort,
        rounds: u32,
        budget: Budget,
        selection: &Selection,
    ) -> Result<Self, SelectionError> {
        if let Some(unknown) = selection
            .scenarios
            .iter()
            .find(|name| !scenarios.iter().any(|scenario| scenario.name == **name))
        {
            return Err(SelectionError::Scenario {
                name: unknown.clone(),
                known: scenarios
                    .iter()
                    .map(|scenario| scenario.name.clone())
                    .collect(),
            });
        }
        let mut plan = Self {
            cells: Vec::new(),
            budget,
            scenarios: Vec::new(),
        };
        let wanted = |scenario: &&Scenario| {
            selection.scenarios.is_empty() || selection.scenarios.contains(&scenario.name)
        };
        for scenario in scenarios.iter().filter(wanted) {
            let rounds = rounds.min(scenario.rounds_max.unwrap_or(rounds));
            let cells = selection.cells_of(scenario, effort);
            if cells.is_empty() {
                continue;
            }
            plan.cells
                .extend(cells.into_iter().map(|cell| PlannedCell { cell, rounds }));
            plan.scenarios.push(ScenarioNote {
                name: scenario.name.clone(),
                title: scenario.title.clone(),
                about: scenario.about.trim().to_owned(),
                rounds,
            });
        }
        selection.check_cells(&plan.cells)?;
        Ok(plan)
    }

    /// Plans the cells that a record announces.
    pub fn resumed(record: &Record, budget: Budget) -> Self {
        let rounds_of = |cell: &Cell| {
            let mut notes = record.run.scenarios.iter();
            let note = notes.find(|note| note.name == cell.scenario);
            note.map_or(record.run.rounds, |note| note.rounds)
        };
        let cells = record.cells.iter().map(|cell| PlannedCell {
            rounds: rounds_of(cell),
            cell: cell.clone(),
        });
        Self {
            cells: cells.collect(),
            budget,
            scenarios: record.run.scenarios.clone(),
        }
    }
}

impl Selection {
    fn cells_of(&self, scenario: &Scenario, effort: Effort) -> Vec<Cell> {
        if self.cells.is_empty() {
            return scenario.cells_at(effort).cloned().collect();
        }
        let wanted = |cell: &&Cell| {
            let id = cell.id();
            self.cells.iter().any(|part| id.contains(part))
        };
        scenario.cells.iter().filter(wanted).cloned().collect()
    }

    fn check_cells(&self, planned: &[PlannedCell]) -> Result<(), SelectionError> {
        for part in &self.cells {
            if !planned
                .iter()
                .any(|planned| planned.cell.id().contains(part))
            {
                return Err(SelectionError::Cell { part: part.clone() });
            }
        }
        Ok(())
    }
}

/// The reason why a selection is invalid.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// No cell matches.
    #[error("no cell matches {part:?}; see `linerate bench list`")]
    Cell {
        /// The part of an id that was requested.
        part: String,
    },
    /// No scenario has that name.
    #[error("unknown scenario {name:?}; available: {}", known.join(", "))]
    Scenario {
        /// The name that was requested.
        name: String,
        /// Names of the scenarios that exist.
        known: Vec<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "title = 'a'\nabout = 'b'\nrounds-max = 2\nquick = ['8B-1c-1w']\n[[cells]]\n\
        kind = 'echo'\nconnections = [1, 2]\npayload-bytes = [8, 1024]\n";

    fn scenarios() -> Vec<Scenario> {
        vec![
            Scenario::parse("first", TEXT).unwrap(),
            Scenario::parse("second", &TEXT.replace("rounds-max = 2\n", "")).unwrap(),
        ]
    }

    fn planned(
        effort: Effort,
        scenarios_wanted: &[&str],
        cells: &[&str],
    ) -> Result<Vec<(String, u32)>, SelectionError> {
        let selection = Selection {
            scenarios: scenarios_wanted
                .iter()
                .map(|name| name.to_string())
                .collect(),
            cells: cells.iter().map(|part| part.to_string()).collect(),
        };
        let plan = Plan::new(&scenarios(), effort, 5, effort.budgets().each, &selection)?;
        let cells = plan.cells.into_iter();
        Ok(cells
            .map(|planned| (planned.cell.id(), planned.rounds))
            .collect())
    }

    #[test]
    fn scenarios_may_be_content_with_fewer_rounds() {
        let quick = planned(Effort::Quick, &[], &[]).unwrap();
        assert_eq!(
            quick,
            [("first/8B-1c-1w".into(), 2), ("second/8B-1c-1w".into(), 5)]
        );
        assert_eq!(
            planned(Effort::Standard, &["second"], &[]).unwrap().len(),
            4
        );
    }

    #[test]
    fn cells_are_selected_by_parts_of_their_names_whatever_the_effort() {
        let cells = planned(Effort::Quick, &[], &["first/1KiB", "2c"]).unwrap();
        let names: Vec<_> = cells.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "first/1KiB-1c-1w",
                "first/8B-2c-1w",
                "first/1KiB-2c-1w",
                "second/8B-2c-1w",
                "second/1KiB-2c-1w",
            ]
        );
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = planned(Effort::Quick, &["third"], &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown scenario \"third\"; available: first, second"
        );
        let error = planned(Effort::Quick, &[], &["8B", "9B"]).unwrap_err();
        assert!(error.to_string().contains("\"9B\""), "{error}");
    }
}
