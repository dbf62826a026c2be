//! Comparison of two records: what changed, and which changes exceed the noise.
//!
//! A change counts if both of these conditions hold:
//!
//! 1. The ranges over the rounds do not overlap: every round of one record is better than every
//!    round of the other. There are few rounds, so a test that assumes a distribution would promise
//!    more than it can keep.
//! 2. The medians differ by more than [`CHANGE_MIN`] and by more than the pooled spread, which is
//!    the root mean square of the half ranges, relative to the medians. Ranges of three or five
//!    rounds fail to overlap by chance now and then, and two runs of the same server do differ by a
//!    few per cent, because code and memory end up at other addresses.
//!
//! A single round has no range, so no change can exceed it.

#[cfg(test)]
mod tests;
mod text;

use serde::Serialize;

use crate::record::{Record, Run};
use crate::report::number::counted;
use crate::summary::{CellSummary, Metric, Spread, Standing, Status, Summary};

/// A change of a median by this share or less is noise, whatever the rounds are.
pub const CHANGE_MIN: f64 = 0.03;

/// Number of rounds that each record needs before a change can exceed the noise.
const ROUNDS_MIN: usize = 2;

/// The differences between two records, the first of which is the base.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What makes the two records hard to compare: different machines, efforts, versions or cells.
    /// Show these first.
    pub cautions: Vec<String>,
    /// Contenders in cells that have a headline figure in both records, in the order of the second
    /// record.
    pub changes: Vec<Change>,
    /// Contenders in cells that have a headline figure in only one of the records.
    pub one_sided: Vec<UnmatchedFigure>,
    /// Number of changes of each kind.
    pub totals: Totals,
}

/// How a contender's headline figure in a cell changed.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Id of the cell.
    pub cell: String,
    /// Name of the contender.
    pub contender: String,
    /// The figure that is compared.
    pub metric: Metric,
    /// The figure in the first record.
    pub before: Spread,
    /// The figure in the second record.
    pub after: Spread,
    /// Change of the median as a share of the first one: 0.1 is 10 % more, whether or not more is
    /// better.
    pub change: f64,
    /// The verdict on the change.
    pub verdict: Verdict,
}

/// A verdict on a change: whether it exceeds the noise, and in which direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The change exceeds the noise and is an improvement.
    Better,
    /// The change does not exceed the noise.
    WithinNoise,
    /// The change exceeds the noise and is a regression.
    Worse,
}

/// A contender that has a headline figure for a cell in only one of the records.
#[derive(Clone, Debug, Serialize)]
pub struct UnmatchedFigure {
    /// Id of the cell.
    pub cell: String,
    /// Name of the contender.
    pub contender: String,
    /// True if the first record has the figure.
    pub in_first: bool,
    /// Why the other record does not have it.
    pub reason: String,
}

/// Number of changes of each kind.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Totals {
    /// Number of changes judged [`Verdict::Better`].
    pub better: usize,
    /// Number of changes judged [`Verdict::WithinNoise`].
    pub within_noise: usize,
    /// Number of changes judged [`Verdict::Worse`].
    pub worse: usize,
}

/// Compares two records. `first` is the base; changes lead from it to `second`.
pub fn compare(first: &Record, second: &Record) -> Comparison {
    let (before, after) = (Summary::of(first), Summary::of(second));
    let mut comparison = Comparison {
        cautions: cautions(&first.run, &second.run),
        changes: Vec::new(),
        one_sided: Vec::new(),
        totals: Totals::default(),
    };
    for cell in after.cells() {
        let id = cell.cell.id();
        let Some(base) = before.cells().find(|it| it.cell.id() == id) else {
            continue;
        };
        if base.cell.load != cell.cell.load || base.metric != cell.metric {
            let caution = format!("{id} differs between the records and is not compared");
            comparison.cautions.push(caution);
            continue;
        }
        comparison.add_cell(base, cell);
    }
    comparison.cautions.extend(missing(&before, &after));
    comparison
}

impl Comparison {
    fn add_cell(&mut self, base: &CellSummary, cell: &CellSummary) {
        for standing in &cell.standings {
            let Some(earlier) = base.standing(&standing.contender) else {
                continue;
            };
            match (earlier.headline, standing.headline) {
                (Some(before), Some(after)) => {
                    let rounds = rounds(earlier).min(rounds(standing));
                    let verdict = judge(cell.metric, before, after, rounds);
                    self.totals.add(verdict);
                    self.changes.push(Change {
                        cell: cell.cell.id(),
                        contender: standing.contender.clone(),
                        metric: cell.metric,
                        before,
                        after,
                        change: after.median / before.median - 1.0,
                        verdict,
                    });
                }
                (None, None) => {}
                (earlier_figure, _) => {
                    let in_first = earlier_figure.is_some();
                    let without = if in_first { standing } else { earlier };
                    self.one_sided.push(UnmatchedFigure {
                        cell: cell.cell.id(),
                        contender: standing.contender.clone(),
                        in_first,
                        reason: reason(&without.status),
                    });
                }
            }
        }
    }
}

impl Totals {
    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Better => self.better += 1,
            Verdict::WithinNoise => self.within_noise += 1,
            Verdict::Worse => self.worse += 1,
        }
    }
}

/// Judges a change by the rule in the documentation of this module.
fn judge(metric: Metric, before: Spread, after: Spread, rounds: usize) -> Verdict {
    let pooled = ((before.relative().powi(2) + after.relative().powi(2)) / 2.0).sqrt();
    let change = (after.median / before.median - 1.0).abs();
    let exceeds_noise =
        rounds >= ROUNDS_MIN && before.is_apart_from(&after) && change > pooled.max(CHANGE_MIN);
    match exceeds_noise {
        false => Verdict::WithinNoise,
        true if metric.ratio(after.median, before.median) > 1.0 => Verdict::Better,
        true => Verdict::Worse,
    }
}

/// Returns how many of a contender's rounds count.
fn rounds(standing: &Standing) -> usize {
    match standing.status {
        Status::Measured { rounds, .. } => rounds,
        Status::Failed { .. } | Status::LoadBound { .. } | Status::Unsupported { .. } => 0,
    }
}

fn reason(status: &Status) -> String {
    match status {
        Status::Failed { reason, .. } => format!("failed: {reason}"),
        Status::LoadBound { .. } => "the load generator was the bottleneck".into(),
        Status::Measured { .. } => "the compared figure is not known".into(),
        Status::Unsupported { reason } => format!("cannot take part: {reason}"),
    }
}

/// Returns the differences between two runs other than their figures.
fn cautions(first: &Run, second: &Run) -> Vec<String> {
    type Condition = (&'static str, fn(&Run) -> String);
    const CONDITIONS: [Condition; 14] = [
        ("processor", |run| run.host.cpu.clone()),
        ("cores", |run| run.host.cores.to_string()),
        ("server cores", |run| format!("{:?}", run.host.server_cores)),
        ("load cores", |run| format!("{:?}", run.host.load_cores)),
        ("memory in bytes", |run| run.host.memory_bytes.to_string()),
        ("kernel", |run| run.host.kernel.clone()),
        ("hypervisor", |run| run.host.hypervisor.clone()),
        ("clock governor", |run| run.host.governor.clone()),
        ("mitigations", |run| run.host.mitigations.join("; ")),
        ("tools", |run| run.host.tools.join(", ")),
        ("effort", |run| run.effort.clone()),
        ("milliseconds per round", |run| run.measured_ms.to_string()),
        ("milliseconds of warm-up", |run| run.warm_up_ms.to_string()),
        ("version of linerate that measured", |run| {
            run.linerate.clone()
        }),
    ];
    let mut cautions = Vec::new();
    let mut check = |what: &str, a: &str, b: &str| {
        if a != b {
            cautions.push(format!("{what}: {} before, {} after", told(a), told(b)));
        }
    };
    for (what, of) in CONDITIONS {
        check(what, &of(first), &of(second));
    }
    for note in &second.contenders {
        let earlier = first.contenders.iter().find(|it| it.name == note.name);
        if let Some(earlier) = earlier {
            check(
                &format!("version of {}", note.name),
                &earlier.version,
                &note.version,
            );
        }
    }
    if first.rounds.min(second.rounds) < ROUNDS_MIN as u32 {
        cautions.push("one round has no spread, so no change can be told from noise".into());
    }
    cautions
}

fn told(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

/// Returns the contenders, and the number of cells, that are in only one of the records.
fn missing(first: &Summary, second: &Summary) -> Vec<String> {
    let sides = [("first", first, second), ("second", second, first)];
    let mut missing = Vec::new();
    for (which, these, those) in sides {
        let names = these.contenders.iter();
        let names = names.filter(|name| !those.contenders.contains(name));
        let names: Vec<&str> = names.map(String::as_str).collect();
        if !names.is_empty() {
            missing.push(format!("only in the {which} record: {}", names.join(", ")));
        }
    }
    for (which, these, those) in sides {
        let has = |id: &str| those.cells().any(|it| it.cell.id() == id);
        let count = these.cells().filter(|it| !has(&it.cell.id())).count();
        if count > 0 {
            missing.push(format!(
                "only in the {which} record: {}",
                counted(count, "cell")
            ));
        }
    }
    missing
}
