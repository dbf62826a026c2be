//! Counters by status.

use std::collections::BTreeMap;

use super::tally::Tally;
use crate::query::encoding::STATUSES;

/// The classes of status codes: 1xx to 5xx (RFC 9110 §15), and all others.
pub(crate) const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// Returns the index of a status in [`CLASSES`].
#[inline]
pub(crate) fn class(status: u16) -> usize {
    match status / 100 {
        hundreds @ 1..=5 => usize::from(hundreds) - 1,
        _ => 5,
    }
}

/// Counters for each status.
#[derive(Debug)]
pub(super) struct Statuses(Box<[Tally; STATUSES]>);

impl Statuses {
    pub(super) fn new() -> Self {
        Self(Box::new([Tally::default(); STATUSES]))
    }

    /// Counts a status below 1,000; parsed lines have no others.
    #[inline]
    pub(super) fn count(&mut self, status: u16, bytes_sent: u64) {
        if let Some(tally) = self.0.get_mut(usize::from(status)) {
            tally.count(status, bytes_sent);
        }
    }

    /// Returns the counts of the statuses that occurred, as three digits.
    pub(super) fn by_code(&self) -> BTreeMap<String, u64> {
        let codes = self.list().into_iter();
        codes.map(|(code, tally)| (code, tally.requests)).collect()
    }

    /// Returns the count of every class.
    pub(super) fn by_class(&self) -> BTreeMap<&'static str, u64> {
        let mut requests = [0; CLASSES.len()];
        for (status, tally) in (0..).zip(self.0.iter()) {
            requests[class(status)] += tally.requests;
        }
        CLASSES.into_iter().zip(requests).collect()
    }

    /// Returns the tallies of the statuses that occurred, as three digits.
    pub(super) fn list(&self) -> Vec<(String, Tally)> {
        let tallies = self.0.iter().enumerate();
        tallies
            .filter(|(_, tally)| tally.requests > 0)
            .map(|(status, tally)| (format!("{status:03}"), *tally))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Statuses;

    #[test]
    fn statuses_are_counted_by_code_and_by_class() {
        let mut statuses = Statuses::new();
        for status in [0, 99, 100, 200, 200, 304, 404, 499, 599, 600, 999] {
            statuses.count(status, 5);
        }
        let codes: Vec<_> = statuses.by_code().into_iter().collect();
        assert_eq!(codes.len(), 10);
        assert_eq!(codes[0], ("000".to_string(), 1));
        assert_eq!(codes[3], ("200".to_string(), 2));
        assert_eq!(statuses.list()[3].1.bytes, 10);
        let classes: Vec<_> = statuses.by_class().into_values().collect();
        assert_eq!(classes, [1, 2, 1, 2, 1, 4]);
    }
}
