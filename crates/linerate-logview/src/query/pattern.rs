//! The value of a condition: a text, with a `*` at either end for any other.

use memchr::memmem;

use crate::aggregate::dictionary::VALUE_CHARS_MAX;
use crate::aggregate::ranking::text;

/// What values have to be or to hold.
#[derive(Debug)]
pub(super) struct Pattern<'a> {
    text: &'a str,
    /// Whether anything may come before the text, and after it.
    any_before: bool,
    any_after: bool,
    /// Whether the text may be what people see of a value that can't be shown as it is.
    is_excerpt: bool,
}

impl<'a> Pattern<'a> {
    pub(super) fn new(value: &'a str) -> Self {
        let (text, any_before) = match value.strip_prefix('*') {
            Some(text) => (text, true),
            None => (value, false),
        };
        let (text, any_after) = match text.strip_suffix('*') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let is_excerpt =
            value.contains(char::REPLACEMENT_CHARACTER) || value.chars().count() >= VALUE_CHARS_MAX;
        Self {
            text,
            any_before,
            any_after,
            is_excerpt: is_excerpt && !any_before && !any_after,
        }
    }

    pub(super) fn matches(&self, value: &[u8]) -> bool {
        let wanted = self.text.as_bytes();
        match (self.any_before, self.any_after) {
            (false, false) => value == wanted || (self.is_excerpt && text(value) == self.text),
            (false, true) => value.starts_with(wanted),
            (true, false) => value.ends_with(wanted),
            (true, true) => memmem::find(value, wanted).is_some(),
        }
    }

    /// Returns the only value that matches, if there is but one.
    pub(super) fn literal(&self) -> Option<&[u8]> {
        let is_literal = !self.any_before && !self.any_after && !self.is_excerpt;
        is_literal.then_some(self.text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    fn matching<'a>(pattern: &str, values: &[&'a str]) -> Vec<&'a str> {
        let pattern = Pattern::new(pattern);
        let values = values.iter().copied();
        values.filter(|it| pattern.matches(it.as_bytes())).collect()
    }

    #[test]
    fn stars_at_the_ends_stand_for_any_text() {
        let values = ["", "/", "/a", "/a/b", "b/a", "a*b"];
        assert_eq!(matching("/a", &values), ["/a"]);
        assert_eq!(matching("/a*", &values), ["/a", "/a/b"]);
        assert_eq!(matching("*/a", &values), ["/a", "b/a"]);
        assert_eq!(matching("*/*", &values), ["/", "/a", "/a/b", "b/a"]);
        assert_eq!(matching("*", &values), values);
        assert_eq!(matching("**", &values), values);
        assert_eq!(matching("", &values), [""]);
        assert_eq!(matching("a*b", &values), ["a*b"]);
        assert_eq!(Pattern::new("/a").literal(), Some(&b"/a"[..]));
        assert_eq!(Pattern::new("/a*").literal(), None);
    }

    #[test]
    fn what_is_shown_of_a_value_matches_it() {
        assert!(Pattern::new("/\u{FFFD}").matches(b"/\xE4"));
        assert!(!Pattern::new("/\u{FFFD}").matches(b"/\xE4x"));
        let shown = "x".repeat(1_000);
        assert!(Pattern::new(&shown).matches("x".repeat(2_000).as_bytes()));
        assert!(!Pattern::new(&shown[1..]).matches("x".repeat(2_000).as_bytes()));
    }
}
