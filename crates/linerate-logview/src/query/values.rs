//! Tests of string values.

use std::{borrow::Cow, cmp::Ordering};

use linerate_filter::tree::{Comparison, TextTest};
use memchr::memmem::Finder;

use super::constants::Constants;
use super::ranges::Ranges;

/// Returns whether a value matches.
type Test<'a> = Box<dyn Fn(&[u8]) -> bool + 'a>;

/// A condition on a string value.
///
/// Values that are not UTF-8 are compared as they are displayed, with invalid bytes replaced.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// The value has this order relative to the string. Never used for equality or inequality.
    Ordered(Comparison, Box<str>),
    /// The value equals one of these constants.
    OneOf(Constants),
    /// The value starts with, ends with or contains the string.
    Part(TextTest, Box<str>),
    /// The number of characters of the value is in these ranges.
    Size(Ranges),
}

impl Values {
    /// Returns the only values that can match. Returns `None` if they cannot be enumerated, or if a
    /// value that is displayed in altered form may match as well.
    pub(crate) fn literals(&self) -> Option<impl Iterator<Item = &[u8]>> {
        match self {
            Self::OneOf(constants) => constants.literals(),
            _ => None,
        }
    }

    /// Returns a function that tests a value.
    pub(crate) fn test(&self) -> Test<'_> {
        match self {
            Self::OneOf(constants) => Box::new(|value| constants.has(value)),
            Self::Ordered(comparison, than) => {
                let (comparison, than) = (*comparison, than.as_bytes());
                Box::new(move |value| holds(comparison, shown(value).as_bytes().cmp(than)))
            }
            Self::Part(test, part) => {
                // UTF-8 is self-synchronizing, so a search in the bytes finds the same as in
                // characters.
                let is_shown = part.contains(char::REPLACEMENT_CHARACTER);
                let (test, part, finder) = (*test, part.as_bytes(), Finder::new(&**part));
                Box::new(move |value| {
                    let shown = if is_shown {
                        shown(value)
                    } else {
                        Cow::Borrowed("")
                    };
                    let value = if is_shown { shown.as_bytes() } else { value };
                    match test {
                        TextTest::Contains => finder.find(value).is_some(),
                        TextTest::EndsWith => value.ends_with(part),
                        TextTest::StartsWith => value.starts_with(part),
                    }
                })
            }
            Self::Size(sizes) => {
                Box::new(move |value| sizes.has(shown(value).chars().count() as u64))
            }
        }
    }
}

fn shown(value: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(value)
}

fn holds(comparison: Comparison, ordering: Ordering) -> bool {
    match comparison {
        Comparison::Equal => ordering.is_eq(),
        Comparison::Greater => ordering.is_gt(),
        Comparison::GreaterOrEqual => ordering.is_ge(),
        Comparison::Less => ordering.is_lt(),
        Comparison::LessOrEqual => ordering.is_le(),
        Comparison::NotEqual => ordering.is_ne(),
    }
}

#[cfg(test)]
mod tests {
    use linerate_filter::tree::TextTest;

    use super::{Constants, Values};
    use crate::query::Field;

    fn one_of(text: &str) -> Values {
        Values::OneOf(Constants::parse(Field::Path, [text]).unwrap())
    }

    #[test]
    fn the_shown_form_of_a_value_equals_it() {
        let matches = |text: &str, value: &[u8]| one_of(text).test()(value);
        assert!(matches("/\u{FFFD}", b"/\xE4") && !matches("/\u{FFFD}", b"/\xE4x"));
        let shown = "x".repeat(1_000);
        assert!(matches(&shown, "x".repeat(2_000).as_bytes()));
        assert!(!matches(&shown[1..], "x".repeat(2_000).as_bytes()));
        assert!(one_of("/a").literals().is_some() && one_of(&shown).literals().is_none());
    }

    #[test]
    fn parts_are_found_in_what_is_not_utf_8() {
        let matches = |test, part: &str| Values::Part(test, part.into()).test()(b"/\xE4x\xC3\xA4");
        for (test, part) in [
            (TextTest::StartsWith, "/\u{FFFD}x"),
            (TextTest::StartsWith, "/"),
            (TextTest::EndsWith, "xä"),
            (TextTest::Contains, "x"),
            (TextTest::Contains, "\u{FFFD}xä"),
            (TextTest::Contains, ""),
        ] {
            assert!(matches(test, part), "{part}");
        }
        assert!(!matches(TextTest::Contains, "\u{FFFD}ä"));
    }
}
