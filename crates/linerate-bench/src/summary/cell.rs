//! The contenders of a cell: which of them count, in which order, and how far apart they are.

use std::collections::{BTreeMap, HashMap};

use crate::cell::{Cell, Deflate, Load};
use crate::record::{Figures, Measurement, Outcome};
use crate::summary::medians::Medians;
use crate::summary::metric::Metric;
use crate::summary::spread::Spread;
use crate::summary::{REFERENCE, is_ours};

/// Contenders whose messages are at most this many times as long as linerate's are considered to
/// compress as well as linerate.
const AS_SHORT: f64 = 1.02;

/// The results of a cell.
#[derive(Clone, Debug)]
pub struct CellSummary {
    /// The cell.
    pub cell: Cell,
    /// The figure by which its contenders are compared.
    pub metric: Metric,
    /// All contenders that had a turn: first those with a headline figure, best first, then the
    /// others by name.
    pub standings: Vec<Standing>,
}

impl CellSummary {
    /// Summarises the measurements of a cell. If a round was measured several times, the last one
    /// counts.
    pub(super) fn of(cell: &Cell, measurements: &[&Measurement]) -> Self {
        let mut turns: BTreeMap<&str, BTreeMap<u32, &Outcome>> = BTreeMap::new();
        for measurement in measurements {
            let rounds = turns.entry(&measurement.contender).or_default();
            rounds.insert(measurement.round, &measurement.outcome);
        }
        let figures: Vec<&Figures> = turns
            .values()
            .flat_map(BTreeMap::values)
            .filter_map(|outcome| match outcome {
                Outcome::LoadBound(figures) | Outcome::Measured(figures) => Some(figures),
                Outcome::Failed { .. } | Outcome::Unsupported { .. } => None,
            })
            .collect();
        let cpu_known = figures.is_empty() || figures.iter().any(|it| it.server.is_some());
        let metric = Metric::new(&cell.load, cpu_known);
        let mut standings: Vec<Standing> = turns
            .into_iter()
            .map(|(contender, rounds)| Standing::of(contender, metric, &rounds))
            .collect();
        standings.sort_by(|a, b| match (a.headline, b.headline) {
            (Some(a), Some(b)) if metric.more_is_better() => b.median.total_cmp(&a.median),
            (Some(a), Some(b)) => a.median.total_cmp(&b.median),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        let mut summary = Self {
            cell: cell.clone(),
            metric,
            standings,
        };
        summary.rank();
        summary.relate();
        summary
    }

    /// Returns the contenders with a headline figure, best first, including the reference.
    pub fn counted(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().filter(|it| it.headline.is_some())
    }

    /// Returns the contenders without a headline figure.
    pub fn not_counted(&self) -> impl Iterator<Item = &Standing> {
        self.standings.iter().filter(|it| it.headline.is_none())
    }

    /// Returns the best contender, or `None` if no contender has a figure or [the load was the
    /// bottleneck](Self::is_load_bound) for any of them. The reference does not count.
    pub fn first(&self) -> Option<&Standing> {
        self.standings.iter().find(|it| it.rank == Some(1))
    }

    /// Returns the best of the figures that were measured, even if the load was too slow for
    /// another contender.
    pub fn best_measured(&self) -> Option<&Standing> {
        self.counted().find(|it| it.contender != REFERENCE)
    }

    /// Returns the best server of linerate, or one without a figure if none has any.
    pub fn ours(&self) -> Option<&Standing> {
        self.standings.iter().find(|it| is_ours(&it.contender))
    }

    /// Returns the best contender other than linerate and the reference.
    pub fn best_peer(&self) -> Option<&Standing> {
        self.peers().next()
    }

    fn peers(&self) -> impl Iterator<Item = &Standing> {
        let standings = self.standings.iter();
        standings.filter(|it| it.rank.is_some() && !is_ours(&it.contender))
    }

    /// Like [`best_peer`](Self::best_peer), but considers only contenders whose messages are at
    /// most 2 % longer on the wire than linerate's. A server that compresses less is faster because
    /// of that.
    pub fn best_peer_alike(&self) -> Option<&Standing> {
        let wire_bytes = |it: &Standing| Some(it.medians.as_ref()?.wire_bytes?.median);
        let ours = wire_bytes(self.ours()?)?;
        let is_alike = |it: &&Standing| {
            let bytes = wire_bytes(it);
            bytes.is_some_and(|bytes| bytes <= ours * AS_SHORT)
        };
        self.peers().find(is_alike)
    }

    /// Returns whether the cell has no first, because the load generator was too slow for at least
    /// one contender. The figure of that contender was not measured and could be any.
    pub fn is_load_bound(&self) -> bool {
        self.standings
            .iter()
            .any(|it| it.contender != REFERENCE && matches!(it.status, Status::LoadBound { .. }))
    }

    /// Returns whether the bare TCP echo is an upper bound for a WebSocket server. It answers each
    /// piece of input with a write, and writes each message to each subscriber separately, while
    /// others combine writes.
    pub(super) fn is_bounded(&self) -> bool {
        match &self.cell.load {
            Load::Echo(echo) => echo.write_bytes_max.is_none(),
            Load::Fanout(_) => false,
            Load::Idle(_) | Load::Upload(_) => true,
        }
    }

    /// Returns whether messages are compressed.
    pub fn is_compressed(&self) -> bool {
        matches!(&self.cell.load, Load::Echo(echo) if echo.deflate != Deflate::Off)
    }

    /// Returns a contender's standing.
    pub fn standing(&self, contender: &str) -> Option<&Standing> {
        self.standings.iter().find(|it| it.contender == contender)
    }

    fn rank(&mut self) {
        if self.is_load_bound() {
            return;
        }
        let ranked = self.standings.iter_mut();
        let ranked = ranked.filter(|it| it.headline.is_some() && it.contender != REFERENCE);
        for (index, standing) in ranked.enumerate() {
            standing.rank = Some(index + 1);
        }
    }

    fn relate(&mut self) {
        let rounds_of = |found: Option<&Standing>| found.map(|it| it.rounds.clone());
        let reference = rounds_of(self.standing(REFERENCE));
        let first = rounds_of(self.first());
        let best_peer = rounds_of(self.best_peer());
        let metric = self.metric;
        for standing in &mut self.standings {
            let ratio = |other: &Option<HashMap<u32, f64>>| {
                paired_ratio(metric, &standing.rounds, other.as_ref()?)
            };
            standing.to_reference = ratio(&reference);
            standing.to_best_peer = ratio(&best_peer);
            standing.to_first = ratio(&first);
        }
    }
}

/// The result of a contender in a cell.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Name of the contender.
    pub contender: String,
    /// The status of its figures: whether they count, and if not, why.
    pub status: Status,
    /// Its figures, if they count.
    pub medians: Option<Medians>,
    /// The figure that the cell compares; `None` if it does not count or is not known.
    pub headline: Option<Spread>,
    /// Counted from 1; `None` without a headline figure, for the reference, and in a cell that has
    /// no first.
    pub rank: Option<usize>,
    /// How many times as good as `raw-tcp` it is.
    pub to_reference: Option<f64>,
    /// How many times as good as the best contender other than linerate and `raw-tcp` it is.
    pub to_best_peer: Option<f64>,
    /// How many times as good as the best contender other than `raw-tcp` it is. That may be
    /// linerate.
    pub to_first: Option<f64>,
    /// The headline figure of each round that counts.
    rounds: HashMap<u32, f64>,
}

impl Standing {
    fn of(contender: &str, metric: Metric, rounds: &BTreeMap<u32, &Outcome>) -> Self {
        let (status, counted) = Status::of(rounds);
        let headlines: HashMap<u32, f64> = counted
            .iter()
            .filter_map(|(round, figures)| Some((*round, metric.of(figures)?)))
            .collect();
        let figures: Vec<&Figures> = counted.into_values().collect();
        Self {
            contender: contender.into(),
            status,
            medians: (!figures.is_empty()).then(|| Medians::of(&figures)),
            headline: Spread::of(headlines.values().copied()),
            rank: None,
            to_reference: None,
            to_best_peer: None,
            to_first: None,
            rounds: headlines,
        }
    }
}

/// The status of a contender's figures in a cell: whether they count, and if not, why.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// It failed in at least one round. If a server answers wrongly even once, its other rounds do
    /// not count either.
    Failed {
        /// What happened the first time.
        reason: String,
        /// Number of rounds in which it failed.
        failed: usize,
        /// Number of all rounds.
        rounds: usize,
    },
    /// The load generator was the bottleneck in at least half of the rounds.
    LoadBound {
        /// Median share of the time in which the load was busy, 0 to 1.
        load_busy: Option<f64>,
    },
    /// The figures count.
    Measured {
        /// Number of rounds that count.
        rounds: usize,
        /// Number of rounds that do not count, because the load generator was the bottleneck in
        /// them.
        load_bound: usize,
    },
    /// It does not offer what the cell needs.
    Unsupported {
        /// What it lacks.
        reason: String,
    },
}

impl Status {
    /// Returns the status, and the figures of the rounds that count.
    fn of<'a>(rounds: &BTreeMap<u32, &'a Outcome>) -> (Self, BTreeMap<u32, &'a Figures>) {
        let mut failures = Vec::new();
        let mut measured = BTreeMap::new();
        let mut bound = Vec::new();
        for (round, outcome) in rounds {
            match outcome {
                Outcome::Failed { reason } => failures.push(reason),
                Outcome::LoadBound(figures) => bound.push(figures),
                Outcome::Measured(figures) => _ = measured.insert(*round, figures),
                Outcome::Unsupported { reason } => {
                    let reason = reason.clone();
                    return (Self::Unsupported { reason }, BTreeMap::new());
                }
            }
        }
        if let Some(reason) = failures.first() {
            let status = Self::Failed {
                reason: (*reason).clone(),
                failed: failures.len(),
                rounds: rounds.len(),
            };
            return (status, BTreeMap::new());
        }
        if bound.len() >= measured.len() {
            let busy = bound
                .iter()
                .map(|it| it.load_cpu_s / (it.elapsed_s * f64::from(it.load_threads)));
            let load_busy = Spread::of(busy).map(|spread| spread.median);
            return (Self::LoadBound { load_busy }, BTreeMap::new());
        }
        let status = Self::Measured {
            rounds: measured.len(),
            load_bound: bound.len(),
        };
        (status, measured)
    }
}

/// Returns the median of the ratios within rounds that both contenders have, because what disturbs
/// a round disturbs both. Without such a round, returns the ratio of the medians.
fn paired_ratio(
    metric: Metric,
    figures: &HashMap<u32, f64>,
    others: &HashMap<u32, f64>,
) -> Option<f64> {
    let pairs = figures
        .iter()
        .filter_map(|(round, figure)| Some(metric.ratio(*figure, *others.get(round)?)));
    if let Some(spread) = Spread::of(pairs) {
        return Some(spread.median);
    }
    let median = |figures: &HashMap<u32, f64>| Some(Spread::of(figures.values().copied())?.median);
    Some(metric.ratio(median(figures)?, median(others)?))
}
