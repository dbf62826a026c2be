//! The constants that a string field is compared with: exact values, wildcards and networks.

use std::{borrow::Cow, collections::HashSet, net::IpAddr};

use ipnet::IpNet;
use memchr::memmem;

use super::error::FilterProblem;
use super::field::Field;
use crate::excerpt::{VALUE_CHARS_MAX, text};

/// Stands for any number of characters in a constant. The character itself is written `[*]`.
const WILDCARD: char = '*';

/// The constants of `==`, `!=` or `in`: a value matches if it equals one of them.
///
/// Values that are not UTF-8 are compared as they are displayed, with invalid bytes replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    exact: HashSet<Box<str>>,
    wildcards: Vec<Wildcard>,
    networks: Vec<IpNet>,
    /// True if a value that is displayed in altered form may equal an exact constant.
    has_excerpts: bool,
}

/// A text with wildcards.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Wildcard {
    /// What a value begins with.
    start: Box<str>,
    /// What follows, in this order, with any number of characters before each.
    middle: Vec<Box<str>>,
    /// What a value ends with.
    end: Box<str>,
}

impl Constants {
    /// Parses the constants that a field is compared with.
    ///
    /// # Errors
    /// Returns a problem if no value of the field can equal one of them.
    pub(super) fn parse<'t>(
        field: Field,
        constants: impl IntoIterator<Item = &'t str>,
    ) -> Result<Self, FilterProblem> {
        let mut parsed = Self::default();
        for constant in constants {
            match field {
                Field::Address if constant.contains('/') => {
                    let network = constant.parse();
                    parsed
                        .networks
                        .push(network.map_err(|_| FilterProblem::Network)?);
                }
                _ => parsed.add(field, constant)?,
            }
        }
        parsed.has_excerpts = parsed.exact.iter().any(|it| may_be_excerpt(it));
        Ok(parsed)
    }

    fn add(&mut self, field: Field, constant: &str) -> Result<(), FilterProblem> {
        let mut parts = split(constant);
        match (parts.pop(), parts.is_empty()) {
            (Some(only), true) if field.may_equal(&only) => {
                self.exact.insert(only);
            }
            (Some(_), true) => return Err(FilterProblem::NeverTrue { field }),
            (end, _) => {
                let start = parts.remove(0);
                // Several wildcards in a row are like one.
                parts.retain(|part| !part.is_empty());
                self.wildcards.push(Wildcard {
                    start,
                    middle: parts,
                    end: end.unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// Returns how many comparisons it takes to test a value: one for each wildcard and network,
    /// and at least one.
    pub(super) fn comparisons(&self) -> usize {
        let wildcards = self.wildcards.iter().map(|it| it.middle.len() + 1);
        (wildcards.sum::<usize>() + self.networks.len()).max(1)
    }

    /// Returns the only values that can match. Returns `None` if they cannot be enumerated, or if a
    /// value that is displayed in altered form may match as well.
    pub(super) fn literals(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let are_all = self.wildcards.is_empty() && self.networks.is_empty() && !self.has_excerpts;
        are_all.then(|| self.exact.iter().map(|it| it.as_bytes()))
    }

    /// Returns whether a value equals one of the constants.
    pub(super) fn has(&self, value: &[u8]) -> bool {
        let shown = String::from_utf8_lossy(value);
        matches!(shown, Cow::Borrowed(shown) if self.exact.contains(shown))
            || (self.has_excerpts && self.exact.contains(&*text(value)))
            || self.wildcards.iter().any(|it| it.matches(&shown))
            || (!self.networks.is_empty() && self.has_address(&shown))
    }

    fn has_address(&self, address: &str) -> bool {
        let Ok(address) = address.parse::<IpAddr>() else {
            return false;
        };
        // An IPv4 client of an IPv6 socket is logged as ::ffff:192.0.2.7.
        let addresses = [address, address.to_canonical()];
        let has = |network: &IpNet| addresses.iter().any(|it| network.contains(it));
        self.networks.iter().any(has)
    }
}

impl Wildcard {
    /// Takes time proportional to the length of the value.
    fn matches(&self, value: &str) -> bool {
        let rest = value.strip_prefix(&*self.start);
        let Some(mut rest) = rest.and_then(|it| it.strip_suffix(&*self.end)) else {
            return false;
        };
        self.middle.iter().all(|part| {
            let at = memmem::find(rest.as_bytes(), part.as_bytes());
            at.is_some_and(|at| {
                rest = &rest[at + part.len()..];
                true
            })
        })
    }
}

/// Returns the parts of a constant between its wildcards, with escaped ones replaced. There is
/// always at least one part.
fn split(constant: &str) -> Vec<Box<str>> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut rest = constant;
    while let Some((before, after)) = rest.split_once(WILDCARD) {
        match (before.strip_suffix('['), after.strip_prefix(']')) {
            (Some(before), Some(after)) => {
                part.push_str(before);
                part.push(WILDCARD);
                rest = after;
            }
            _ => {
                part.push_str(before);
                parts.push(std::mem::take(&mut part).into_boxed_str());
                rest = after;
            }
        }
    }
    part.push_str(rest);
    parts.push(part.into_boxed_str());
    parts
}

/// Returns whether a string may be the displayed form of a value that cannot be displayed
/// unaltered.
fn may_be_excerpt(text: &str) -> bool {
    text.contains(char::REPLACEMENT_CHARACTER) || text.chars().count() >= VALUE_CHARS_MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Constants, split};
    use crate::query::Field;

    fn path(constant: &str) -> Constants {
        Constants::parse(Field::Path, [constant]).unwrap()
    }

    fn address(constants: &[&str]) -> Constants {
        Constants::parse(Field::Address, constants.iter().copied()).unwrap()
    }

    /// Matches a pattern of characters and wildcards by trying every split of the value.
    fn naive(pattern: &[char], value: &[char]) -> bool {
        match pattern.split_first() {
            None => value.is_empty(),
            Some(('*', rest)) => (0..=value.len()).any(|at| naive(rest, &value[at..])),
            Some((first, rest)) => value.first() == Some(first) && naive(rest, &value[1..]),
        }
    }

    proptest! {
        #[test]
        fn wildcards_match_like_a_search_through_all_splits(pattern in "[ab*ä]{0,8}", value in "[abä]{0,10}") {
            let (chars, of_value): (Vec<_>, Vec<_>) = (pattern.chars().collect(), value.chars().collect());
            prop_assert_eq!(path(&pattern).has(value.as_bytes()), naive(&chars, &of_value));
        }

        #[test]
        fn an_escaped_value_matches_only_itself(value in "[a*\\[\\]]{0,8}", other in "[a*\\[\\]]{0,8}") {
            let constants = path(&value.replace('*', "[*]"));
            prop_assert!(constants.has(value.as_bytes()) && constants.literals().is_some());
            prop_assert_eq!(constants.has(other.as_bytes()), value == other);
        }

        #[test]
        fn any_constant_is_parsed_or_refused(constant in "\\PC{0,20}|[0-9./:a-f*]{0,20}") {
            for field in Field::ALL.into_iter().filter(|it| !it.is_number()) {
                let parsed = Constants::parse(field, [&*constant]);
                _ = parsed.map(|it| it.has(constant.as_bytes()));
            }
        }
    }

    #[test]
    fn constants_are_split_at_wildcards_that_are_not_escaped() {
        for (constant, parts) in [
            ("", &[""][..]),
            ("*", &["", ""]),
            ("[*]", &["*"]),
            ("[[*]]", &["[*]"]),
            ("/a/*.js", &["/a/", ".js"]),
            ("**[*]*]", &["", "", "*", "]"]),
            ("[*", &["[", ""]),
        ] {
            let found = split(constant);
            assert!(
                found.iter().map(|it| &**it).eq(parts.iter().copied()),
                "{constant}"
            );
        }
    }

    #[test]
    fn networks_contain_their_addresses() {
        let private = address(&["10.0.0.0/8", "2001:db8::/32", "192.0.2.7"]);
        for inside in [
            "10.0.0.0",
            "10.255.255.255",
            "::ffff:10.1.2.3",
            "2001:db8::1",
            "192.0.2.7",
        ] {
            assert!(private.has(inside.as_bytes()), "{inside}");
        }
        for outside in [
            "11.0.0.0",
            "9.255.255.255",
            "2001:db9::1",
            "10.0.0.0/8",
            "10.0.0",
            "",
            "host",
        ] {
            assert!(!private.has(outside.as_bytes()), "{outside}");
        }
        assert!(private.literals().is_none());
        // The bits of the host are ignored.
        assert!(address(&["10.9.9.9/8"]).has(b"10.1.1.1"));
        assert!(address(&["::ffff:0:0/96"]).has(b"::ffff:192.0.2.7"));
        assert!(address(&["0.0.0.0/0"]).has(b"192.0.2.7"));
        for invalid in [
            "10.0.0.0/33",
            "10.0.0/8",
            "10.0.0.0/",
            "/8",
            "::/129",
            "10.*/8",
        ] {
            let refused = Constants::parse(Field::Address, [invalid]);
            assert!(refused.is_err(), "{invalid}");
        }
    }

    #[test]
    fn constants_that_a_field_never_equals_are_refused() {
        let is_accepted = |field, constant| Constants::parse(field, [constant]).is_ok();
        for class in ["1xx", "5xx", "other", "4*"] {
            assert!(is_accepted(Field::StatusClass, class), "{class}");
        }
        for class in ["abc", "", "404", "6xx", "4XX"] {
            assert!(!is_accepted(Field::StatusClass, class), "{class}");
        }
        for country in ["DE", "", "D*"] {
            assert!(is_accepted(Field::Country, country), "{country}");
        }
        for country in ["de", "Germany", "D", "ÄÖ"] {
            assert!(!is_accepted(Field::Country, country), "{country}");
        }
        assert!(is_accepted(Field::Path, "anything"));
    }
}
