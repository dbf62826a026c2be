//! Runs: contenders take turns in every cell, and the results go into a record.

mod bound;
mod local;
mod order;
mod plan;
mod remote;
mod subject;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cell::{Cell, Load};
use crate::load::{Budget, LoadError, Probe, Target};
use crate::progress::Progress;
use crate::record::{Figures, Journal, Line, Measurement, Outcome, Record, RecordError};
pub use local::Local;
pub use plan::{Plan, PlannedCell, Selection, SelectionError};
pub use remote::{Remote, RemoteError};
pub use subject::{RunningServer, Subject};

/// A contender that fails this often in a cell gets no more turns in it.
const FAILURES_MAX: u32 = 2;

/// The function that puts a load on a server: [`crate::load::measure`], except in tests.
pub type Measure<'a> =
    &'a dyn Fn(&Load, &Target, &Budget, &[u32], &mut dyn Probe) -> Result<Figures, LoadError>;

/// How a run ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum End {
    /// Everything was measured.
    Complete,
    /// The run was stopped before everything was measured.
    Stopped,
}

/// A run that is about to be made.
#[derive(Debug)]
pub struct Run<'a> {
    /// What is measured.
    pub plan: &'a Plan,
    /// The subjects that are measured.
    pub subjects: Vec<&'a dyn Subject>,
    /// Numbers of the cores that the load runs on.
    pub load_cores: &'a [u32],
    /// Becomes true when the run has to stop after the current measurement.
    pub stop: &'a AtomicBool,
}

impl Run<'_> {
    /// Makes the run: measures whatever `done` does not contain yet, and appends each result to the
    /// journal.
    ///
    /// Servers end with the calling thread at the latest.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written. The failure of a server is a result, not
    /// an error.
    pub fn make(
        &self,
        measure: Measure<'_>,
        journal: &mut Journal,
        done: &Record,
        progress: &mut Progress,
    ) -> Result<End, RecordError> {
        let done = FinishedRounds::from(done);
        progress.begin(&self.outstanding(&done), self.plan.budget);
        for group in order::groups(&self.plan.cells) {
            let subjects = self.subjects.iter();
            let mut participants: Vec<Participant<'_>> = subjects
                .map(|&subject| Participant {
                    subject,
                    server: None,
                })
                .collect();
            for index in group {
                let planned = &self.plan.cells[index];
                progress.begin_cell(index, &planned.cell);
                let mut turns = CellTurns {
                    run: self,
                    planned,
                    index,
                    measure,
                    failures: done.failures(&planned.cell),
                };
                for (round, place) in order::turns(planned.rounds, participants.len()) {
                    if self.stop.load(Ordering::Relaxed) {
                        return Ok(End::Stopped);
                    }
                    let participant = &mut participants[place];
                    if done.has(&planned.cell, participant.subject.name(), round) {
                        continue;
                    }
                    if let Some(outcome) = turns.take(participant, place, round, progress) {
                        journal.append(&Line::Measurement(Measurement {
                            cell: planned.cell.id(),
                            contender: participant.subject.name().to_owned(),
                            round,
                            outcome,
                        }))?;
                    }
                }
                progress.end_cell();
            }
        }
        Ok(End::Complete)
    }

    /// Returns the number of measurements still to be made, by cell and subject.
    fn outstanding(&self, done: &FinishedRounds) -> Vec<Vec<u32>> {
        let cells = self.plan.cells.iter();
        cells
            .map(|PlannedCell { cell, rounds }| {
                let subjects = self.subjects.iter();
                subjects
                    .map(|subject| match subject.lacks(cell) {
                        Some(_) => 0,
                        None => (0..*rounds)
                            .filter(|&round| !done.has(cell, subject.name(), round))
                            .count() as u32,
                    })
                    .collect()
            })
            .collect()
    }
}

/// A subject and its server, if one is running.
struct Participant<'a> {
    subject: &'a dyn Subject,
    server: Option<Box<dyn RunningServer + 'a>>,
}

/// The turns of one cell.
struct CellTurns<'a> {
    run: &'a Run<'a>,
    planned: &'a PlannedCell,
    /// Index of the cell in the plan.
    index: usize,
    measure: Measure<'a>,
    failures: HashMap<String, u32>,
}

impl CellTurns<'_> {
    /// Gives one contender its turn. Returns `None` if there is nothing to record.
    fn take(
        &mut self,
        participant: &mut Participant<'_>,
        place: usize,
        round: u32,
        progress: &mut Progress,
    ) -> Option<Outcome> {
        let (cell, name) = (&self.planned.cell, participant.subject.name());
        if let Some(reason) = participant.subject.lacks(cell) {
            return (round == 0).then_some(Outcome::Unsupported { reason });
        }
        let failures = self.failures.entry(name.to_owned()).or_default();
        if *failures >= FAILURES_MAX {
            progress.skip(self.index, place);
            return None;
        }
        progress.begin_turn(name, round, self.planned.rounds);
        let started = Instant::now();
        let outcome = self.measure(participant);
        progress.end_turn(self.index, place, started.elapsed());
        let outcome = match outcome {
            Ok(outcome) => outcome,
            // This says nothing about the server, so there is nothing to record. A resumed run
            // tries again.
            Err(ours) => {
                progress.say(&format!("{}: {name} was not measured: {ours}", cell.id()));
                self.failures.insert(name.to_owned(), FAILURES_MAX);
                return None;
            }
        };
        match &outcome {
            Outcome::Failed { reason } => {
                *self.failures.entry(name.to_owned()).or_default() += 1;
                progress.say(&format!("{}: {name} failed: {reason}", cell.id()));
            }
            Outcome::LoadBound(_) => {
                progress.say(&format!(
                    "{}: {name} was faster than the load; not counted",
                    cell.id()
                ));
            }
            // Whether a server declines is known only after it was tried.
            Outcome::Unsupported { .. } => {
                self.failures.insert(name.to_owned(), FAILURES_MAX);
            }
            Outcome::Measured(_) => {}
        }
        Some(outcome)
    }

    /// Measures one contender. An error is a failure of the load, not of the server.
    fn measure(&self, participant: &mut Participant<'_>) -> Result<Outcome, LoadError> {
        let cell = &self.planned.cell;
        // Memory that a server has allocated for earlier connections would not be counted for the
        // connections of an idle cell, so each measurement needs a new server.
        if matches!(cell.load, Load::Idle(_)) {
            participant.server = None;
        }
        let subject = participant.subject;
        let mut is_new = false;
        let server = match &mut participant.server {
            Some(server) => server,
            none => match subject.start(cell.mode()) {
                Ok(server) => {
                    is_new = true;
                    none.insert(server)
                }
                Err(error) => {
                    let reason = in_words(&error);
                    return Ok(Outcome::Failed { reason });
                }
            },
        };
        let result = if is_new {
            self.warm_up(subject, server.as_mut())
        } else {
            Ok(())
        };
        match result.and_then(|()| self.load(&self.run.plan.budget, server.as_mut())) {
            Ok(figures) => {
                server.wait_until_idle();
                Ok(bound::judge(&cell.load, figures))
            }
            Err(error) if error.is_ours() => Err(error),
            Err(error) if subject.may_decline(&error) => Ok(Outcome::Unsupported {
                reason: error.to_string(),
            }),
            Err(error) => {
                let reason = match server.end() {
                    Some(end) if !error.to_string().contains(&end) => format!("{error}; {end}"),
                    _ => error.to_string(),
                };
                // The server may be in any state, so the next turn starts a new one.
                participant.server = None;
                Ok(Outcome::Failed { reason })
            }
        }
    }

    /// Gives the just-in-time compilers of some runtimes time to optimize.
    fn warm_up(
        &self,
        subject: &dyn Subject,
        server: &mut dyn RunningServer,
    ) -> Result<(), LoadError> {
        if subject.warm_up().is_zero() || matches!(self.planned.cell.load, Load::Idle(_)) {
            return Ok(());
        }
        let budget = Budget {
            warm_up: Duration::ZERO,
            measured: subject.warm_up(),
            ..self.run.plan.budget
        };
        self.load(&budget, server).map(|_| ())
    }

    fn load(&self, budget: &Budget, server: &mut dyn RunningServer) -> Result<Figures, LoadError> {
        let target = server.target().clone();
        let load = &self.planned.cell.load;
        (self.measure)(load, &target, budget, self.run.load_cores, server)
    }
}

/// The measurements that a record already contains.
struct FinishedRounds {
    measured: HashSet<(String, String, u32)>,
    /// Number of failures by cell and contender.
    failures: HashMap<String, HashMap<String, u32>>,
}

impl FinishedRounds {
    fn from(record: &Record) -> Self {
        let mut done = Self {
            measured: HashSet::new(),
            failures: HashMap::new(),
        };
        for measurement in &record.measurements {
            let (cell, name) = (measurement.cell.clone(), measurement.contender.clone());
            let failures = done.failures.entry(cell.clone()).or_default();
            match measurement.outcome {
                Outcome::Failed { .. } => *failures.entry(name.clone()).or_default() += 1,
                Outcome::Unsupported { .. } => {
                    failures.insert(name.clone(), FAILURES_MAX);
                }
                Outcome::LoadBound(_) | Outcome::Measured(_) => {}
            }
            done.measured.insert((cell, name, measurement.round));
        }
        done
    }

    /// Returns whether nothing is left to measure for a subject in a round.
    fn has(&self, cell: &Cell, subject: &str, round: u32) -> bool {
        let cell = cell.id();
        let failures = self.failures.get(&cell).and_then(|all| all.get(subject));
        failures.is_some_and(|&failures| failures >= FAILURES_MAX)
            || self.measured.contains(&(cell, subject.to_owned(), round))
    }

    fn failures(&self, cell: &Cell) -> HashMap<String, u32> {
        self.failures.get(&cell.id()).cloned().unwrap_or_default()
    }
}

/// Returns the message of an error and of its causes.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        words = format!("{words}: {error}");
        source = error.source();
    }
    words
}

#[cfg(test)]
mod tests;
