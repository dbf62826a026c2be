//! Patterns of channel names.

/// Returns whether `text` matches `pattern`, in which `*` stands for any text. An empty pattern
/// matches everything.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    if pattern.is_empty() {
        return true;
    }
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some((_, behind)) = text.split_once(piece) else {
            return false;
        };
        text = behind;
    }
    text.ends_with(end)
}

/// Returns whether `text` matches one of `patterns`.
pub(crate) fn matches_any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, text))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_pattern_matches_with_stars_for_any_text() {
        for (pattern, text) in [
            ("", "news"),
            ("*", "news"),
            ("news", "news"),
            ("ticks:*", "ticks:"),
            ("ticks:*:1m", "ticks:AAPL:1m"),
            ("*a*b*c", "xaybzc"),
            ("a*a", "aa"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("news", "new"),
            ("ticks:*:1m", "ticks:AAPL"),
            ("*a*b*c", "xbzac"),
            ("a*a", "a"),
            ("*ab*b", "ab"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
