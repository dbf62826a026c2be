//! Matches channel names with the patterns of the embedded broker.

/// Returns whether `name` matches `pattern`, in which `*` stands for any text, including the empty
/// text.
///
/// Takes at most as many steps as the product of both lengths, for any pattern.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut in_name) = (0, 0);
    // Where to continue if the text after the last `*` does not match: the star then consumes one
    // more byte.
    let mut retry = None;
    while in_name < name.len() {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, in_name));
        } else if pattern.get(at) == Some(&name[in_name]) {
            at += 1;
            in_name += 1;
        } else if let Some((after_star, taken)) = retry {
            (at, in_name) = (after_star, taken + 1);
            retry = Some((at, in_name));
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "a", true),
            ("ticks:*", "ticks:", true),
            ("ticks:*", "ticks:AAPL", true),
            ("ticks:*", "tick:AAPL", false),
            ("*:1m", "ticks:AAPL:1m", true),
            ("*:1m", "ticks:AAPL:1m2", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("a**", "a", true),
            ("a", "a", true),
            ("a", "ab", false),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_do_not_take_exponential_time() {
        assert!(!matches(&"a*".repeat(200), &"a".repeat(199)));
        assert!(!matches(
            &format!("{}b", "*a".repeat(50)),
            &"a".repeat(1_000)
        ));
    }
}
