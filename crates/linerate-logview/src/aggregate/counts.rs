//! Counters by status and by method.

use std::collections::BTreeMap;

/// The classes of status codes: 1xx to 5xx (RFC 9110 §15), and what is outside them.
pub(super) const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// Returns the place in [`CLASSES`] of a status.
#[inline]
pub(super) fn class(status: u16) -> usize {
    match status / 100 {
        hundreds @ 1..=5 => usize::from(hundreds) - 1,
        _ => 5,
    }
}

/// The number of statuses of three digits.
const STATUSES: usize = 1_000;

/// Counts each status.
#[derive(Debug)]
pub(super) struct Statuses(Box<[u64; STATUSES]>);

impl Statuses {
    pub(super) fn new() -> Self {
        Self(Box::new([0; STATUSES]))
    }

    /// Counts a status below 1,000; there are no others in a line that was parsed.
    #[inline]
    pub(super) fn count(&mut self, status: u16) {
        if let Some(count) = self.0.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Returns the statuses that occur, as three digits.
    pub(super) fn by_code(&self) -> BTreeMap<String, u64> {
        let codes = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        codes
            .map(|(status, &count)| (format!("{status:03}"), count))
            .collect()
    }

    /// Returns the count of every class.
    pub(super) fn by_class(&self) -> BTreeMap<&'static str, u64> {
        let mut classes = BTreeMap::from(CLASSES.map(|name| (name, 0)));
        for (status, count) in (0..).zip(self.0.iter()) {
            *classes.entry(CLASSES[class(status)]).or_default() += count;
        }
        classes
    }
}

/// Under which name methods beyond the limit are counted. A method can't hold brackets.
const OTHER: &str = "(other)";

/// Counts each method up to a number of them, and the others together.
#[derive(Debug)]
pub(super) struct Methods {
    /// In the order of their first occurrence, which puts the frequent ones in front.
    seen: Vec<(Box<[u8]>, u64)>,
    other: u64,
    methods_max: usize,
}

impl Methods {
    pub(super) fn new(methods_max: usize) -> Self {
        Self {
            seen: Vec::new(),
            other: 0,
            methods_max,
        }
    }

    #[inline]
    pub(super) fn count(&mut self, method: &[u8]) {
        match self.seen.iter_mut().find(|(seen, _)| **seen == *method) {
            Some((_, count)) => *count += 1,
            None => self.count_new(method),
        }
    }

    pub(super) fn by_name(&self) -> BTreeMap<String, u64> {
        let seen = self.seen.iter();
        let mut methods: BTreeMap<String, u64> = seen
            .map(|(name, count)| (String::from_utf8_lossy(name).into_owned(), *count))
            .collect();
        if self.other > 0 {
            methods.insert(OTHER.to_string(), self.other);
        }
        methods
    }

    #[cold]
    fn count_new(&mut self, method: &[u8]) {
        if self.seen.len() < self.methods_max {
            self.seen.push((method.into(), 1));
        } else {
            self.other += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Methods, Statuses};

    #[test]
    fn statuses_are_counted_by_code_and_by_class() {
        let mut statuses = Statuses::new();
        for status in [0, 99, 100, 200, 200, 304, 404, 499, 599, 600, 999] {
            statuses.count(status);
        }
        let codes: Vec<_> = statuses.by_code().into_iter().collect();
        assert_eq!(codes.len(), 10);
        assert_eq!(codes[0], ("000".to_string(), 1));
        assert_eq!(codes[3], ("200".to_string(), 2));
        let classes: Vec<_> = statuses.by_class().into_values().collect();
        assert_eq!(classes, [1, 2, 1, 2, 1, 4]);
    }

    #[test]
    fn methods_up_to_the_limit_are_told_apart_and_one_more_is_not() {
        let mut methods = Methods::new(2);
        for method in ["GET", "PUT", "GET"] {
            methods.count(method.as_bytes());
        }
        let expected = [("GET".to_string(), 2), ("PUT".to_string(), 1)];
        assert_eq!(methods.by_name().into_iter().collect::<Vec<_>>(), expected);
        for method in ["HEAD", "TRACE", "PUT"] {
            methods.count(method.as_bytes());
        }
        let counts: Vec<_> = methods.by_name().into_values().collect();
        assert_eq!(counts, [2, 2, 2]);
        assert!(methods.by_name().contains_key("(other)"));
    }
}
