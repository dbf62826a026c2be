//! The lines that are not requests: their number, and the first few of them.

use std::collections::BTreeMap;

use crate::excerpt::excerpt;
use crate::format::Reason;
use crate::summary::UnparsedSample;

/// Counts unparsed lines by reason and keeps the first ones.
#[derive(Debug)]
pub(crate) struct Samples {
    reasons: BTreeMap<&'static str, u64>,
    unparsed: u64,
    kept: Vec<UnparsedSample>,
    samples_max: usize,
    chars_max: usize,
}

impl Samples {
    pub(crate) fn new(samples_max: usize, chars_max: usize) -> Self {
        Self {
            reasons: BTreeMap::new(),
            unparsed: 0,
            kept: Vec::new(),
            samples_max,
            chars_max,
        }
    }

    /// Counts the unparsed line with the number `line`, from 1.
    pub(crate) fn count(&mut self, line: u64, text: &[u8], reason: Reason) {
        self.unparsed += 1;
        *self.reasons.entry(reason.name()).or_default() += 1;
        if self.kept.len() < self.samples_max {
            self.kept.push(UnparsedSample {
                line,
                reason: reason.name(),
                text: excerpt(text, self.chars_max),
            });
        }
    }

    /// Adds the counts and samples of `other`, whose line numbers are relative to `lines_before`.
    pub(crate) fn merge(&mut self, other: &Self, lines_before: u64) {
        self.unparsed += other.unparsed;
        for (reason, count) in &other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
        let room = self.samples_max - self.kept.len();
        self.kept
            .extend(other.kept.iter().take(room).cloned().map(|mut sample| {
                sample.line += lines_before;
                sample
            }));
    }

    /// Removes all counts and samples.
    pub(crate) fn clear(&mut self) {
        self.reasons.clear();
        self.unparsed = 0;
        self.kept.clear();
    }

    pub(crate) fn unparsed(&self) -> u64 {
        self.unparsed
    }

    pub(crate) fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        self.reasons.clone()
    }

    pub(crate) fn list(&self) -> &[UnparsedSample] {
        &self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::Samples;
    use crate::format::Reason;

    #[test]
    fn first_samples_are_kept_and_all_are_counted() {
        let mut samples = Samples::new(2, 3);
        for line in [4, 5, 9] {
            samples.count(line, b"abcd", Reason::BadStatus);
        }
        samples.count(10, b"x", Reason::TooLong);
        assert_eq!(samples.unparsed(), 4);
        let kept: Vec<_> = samples
            .list()
            .iter()
            .map(|it| (it.line, &*it.text))
            .collect();
        assert_eq!(kept, [(4, "abc"), (5, "abc")]);
        let reasons: Vec<_> = samples.by_reason().into_iter().collect();
        assert_eq!(reasons, [("bad status", 3), ("too long", 1)]);
    }
}
