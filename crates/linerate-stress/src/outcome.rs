//! The result of an abuse, and its bounds.

use std::time::Duration;

use serde::Serialize;

use crate::figures::Figures;

/// The maximum ratio of the latency with the abuse to that without it.
pub(crate) const RATIO_MAX: f64 = 1.5;

/// If the host takes a larger share of the CPU time than this, the slowest hundredth of the answers
/// may be slow for that reason alone.
const STOLEN_SHARE_MAX: f64 = 0.01;

/// The result of a row.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// A description of the abuse.
    pub(crate) abuse: String,
    pub(crate) figures: Figures,
    pub(crate) bounds: Bounds,
    /// Further findings and their bounds, in words.
    pub(crate) also: Vec<Finding>,
}

/// The bounds that a row must not exceed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Bounds {
    /// How much the server's memory may grow, in bytes.
    pub(crate) memory_growth_max: u64,
    /// The latency up to which the ratio does not matter, because it does no harm.
    pub(crate) p99_free: Duration,
}

/// A finding that only some rows have.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) text: String,
    pub(crate) is_kept: bool,
}

impl Finding {
    /// Creates a finding from a text that states the figure and its bound.
    pub(crate) fn new(text: String, is_kept: bool) -> Self {
        Self { text, is_kept }
    }

    /// Creates a finding from two counts of the attackers' tally. All of `whole` must be in `part`,
    /// and there must be any.
    pub(crate) fn all(figures: &Figures, whole: &str, part: &str) -> Self {
        let (number, done) = (figures.counted(whole), figures.counted(part));
        let is_kept = done == number && number > 0;
        Self::new(format!("{done} of {number} {part}"), is_kept)
    }
}

impl Outcome {
    /// Returns how much the memory grew from the start to the peak, in bytes.
    pub(crate) fn memory_growth(&self) -> u64 {
        let memory = self.figures.memory_bytes;
        memory.peak.saturating_sub(memory.before)
    }

    pub(crate) fn ratio(&self) -> f64 {
        self.figures.p99_with.as_secs_f64() / self.figures.p99_alone.as_secs_f64()
    }

    /// Returns whether live clients waited too long, but the host took too much CPU time to blame
    /// the server for it.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_late() && self.figures.stolen_share > STOLEN_SHARE_MAX
    }

    fn is_late(&self) -> bool {
        self.figures.p99_with > self.bounds.p99_free && self.ratio() > RATIO_MAX
    }

    /// Returns the bounds that were exceeded.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.memory_growth() > self.bounds.memory_growth_max {
            broken.push("too much memory".to_owned());
        }
        if self.figures.files.after > self.figures.files.before {
            broken.push("files are left open".to_owned());
        }
        if self.is_late() && !self.is_undecided() {
            broken.push("live clients wait too long".to_owned());
        }
        let also = self.also.iter().filter(|finding| !finding.is_kept);
        broken.extend(also.map(|finding| finding.text.clone()));
        broken
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Bounds, Finding, Outcome};
    use crate::figures::{Figures, Span};

    fn outcome() -> Outcome {
        let span = |before, peak, after| Span {
            before,
            peak,
            after,
        };
        Outcome {
            abuse: String::new(),
            figures: Figures {
                memory_bytes: span(100, 150, 120),
                files: span(40, 80, 40),
                p99_alone: Duration::from_micros(1_000),
                p99_with: Duration::from_micros(1_500),
                ..Figures::default()
            },
            bounds: Bounds {
                memory_growth_max: 50,
                p99_free: Duration::from_micros(100),
            },
            also: vec![Finding::new("kept".to_owned(), true)],
        }
    }

    #[test]
    fn all_must_be_done_and_there_must_be_any() {
        for (whole, part, is_kept) in [(0, 0, false), (2, 1, false), (2, 2, true)] {
            let mut figures = Figures::default();
            figures.tally.insert("bombs".to_owned(), whole);
            figures.tally.insert("answered".to_owned(), part);
            let finding = Finding::all(&figures, "bombs", "answered");
            assert_eq!(finding.is_kept, is_kept);
            assert_eq!(finding.text, format!("{part} of {whole} answered"));
        }
    }

    #[test]
    fn what_is_at_its_bounds_is_good_and_what_is_beyond_is_not() {
        assert!(outcome().broken().is_empty());
        let mut more = outcome();
        more.figures.memory_bytes.peak += 1;
        assert_eq!(more.broken(), ["too much memory"]);
        let mut more = outcome();
        more.figures.files.after += 1;
        assert_eq!(more.broken(), ["files are left open"]);
        let mut more = outcome();
        more.figures.p99_with += Duration::from_micros(1);
        assert_eq!(more.broken(), ["live clients wait too long"]);
        assert!(!more.is_undecided());
        more.figures.stolen_share = 0.02;
        assert!(more.is_undecided() && more.broken().is_empty());
        more.bounds.p99_free = Duration::from_micros(2_000);
        assert!(!more.is_undecided() && more.broken().is_empty());
        more.also[0].is_kept = false;
        assert_eq!(more.broken(), ["kept"]);
    }
}
