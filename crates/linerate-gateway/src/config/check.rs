//! Collects violations in values that have the right type.

use std::{fmt::Display, ops::RangeInclusive};

use super::error::Violation;

/// Collects violations, prefixing keys with the path of the current section.
#[derive(Debug, Default)]
pub(super) struct Check {
    path: String,
    violations: Vec<Violation>,
}

impl Check {
    /// Runs `check` with keys relative to the section `name`.
    pub(super) fn section(&mut self, name: &str, check: impl FnOnce(&mut Self)) {
        let outer = self.path.len();
        self.path = self.key(name);
        check(self);
        self.path.truncate(outer);
    }

    /// Reports a value outside of `allowed`.
    pub(super) fn range<T>(&mut self, key: &str, value: T, allowed: RangeInclusive<T>)
    where
        T: Display + PartialOrd,
    {
        if !allowed.contains(&value) {
            let because = format!("must be between {} and {}", allowed.start(), allowed.end());
            self.refuse(key, value, &because);
        }
    }

    /// Reports a value and the reason why it is invalid.
    pub(super) fn refuse(&mut self, key: &str, value: impl Display, because: &str) {
        self.violations.push(Violation {
            key: self.key(key),
            value: value.to_string(),
            because: because.to_owned(),
        });
    }

    pub(super) fn into_violations(self) -> Vec<Violation> {
        self.violations
    }

    fn key(&self, name: &str) -> String {
        match self.path.as_str() {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        }
    }
}
