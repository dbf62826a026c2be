//! What came of an abuse, beside its bounds.

use std::time::Duration;

use serde::Serialize;

use crate::figures::Figures;

/// How many times as long live clients may wait as without the abuse.
pub(crate) const RATIO_MAX: f64 = 1.5;

/// With more of the machine's time missing than this, the slowest hundredth of the answers may be slow for that alone.
const STOLEN_SHARE_MAX: f64 = 0.01;

/// What came of a row.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    /// What was done to the server, in words.
    pub(crate) abuse: String,
    pub(crate) figures: Figures,
    pub(crate) bounds: Bounds,
    /// Further figures with their bounds, in words.
    pub(crate) also: Vec<Finding>,
}

/// What a row must not exceed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Bounds {
    /// How much memory the server may take more than before.
    pub(crate) memory_growth_max: u64,
    /// How long live clients may wait whatever the ratio is: what is below is no harm.
    pub(crate) p99_free: Duration,
}

/// A figure of one row only.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) text: String,
    pub(crate) is_kept: bool,
}

impl Finding {
    /// Returns what was found, and the bound, as words say it.
    pub(crate) fn new(text: String, is_kept: bool) -> Self {
        Self { text, is_kept }
    }
}

impl Outcome {
    /// Returns how much more memory there was at the peak.
    pub(crate) fn memory_growth(&self) -> u64 {
        let memory = self.figures.memory_bytes;
        memory.peak.saturating_sub(memory.before)
    }

    pub(crate) fn ratio(&self) -> f64 {
        self.figures.p99_with.as_secs_f64() / self.figures.p99_alone.as_secs_f64()
    }

    /// Returns whether too little of the machine was left to say that others wait too long.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_late() && self.figures.stolen_share > STOLEN_SHARE_MAX
    }

    fn is_late(&self) -> bool {
        self.figures.p99_with > self.bounds.p99_free && self.ratio() > RATIO_MAX
    }

    /// Returns which bounds do not hold.
    pub(crate) fn broken(&self) -> Vec<String> {
        let mut broken = Vec::new();
        if self.memory_growth() > self.bounds.memory_growth_max {
            broken.push("too much memory".to_owned());
        }
        if self.figures.files.after > self.figures.files.before {
            broken.push("files are left open".to_owned());
        }
        if self.is_late() && !self.is_undecided() {
            broken.push("others wait too long".to_owned());
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
        assert_eq!(more.broken(), ["others wait too long"]);
        assert!(!more.is_undecided());
        more.figures.stolen_share = 0.02;
        assert!(more.is_undecided() && more.broken().is_empty());
        more.bounds.p99_free = Duration::from_micros(2_000);
        assert!(!more.is_undecided() && more.broken().is_empty());
        more.also[0].is_kept = false;
        assert_eq!(more.broken(), ["kept"]);
    }
}
