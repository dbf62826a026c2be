//! Excerpts of arbitrary bytes, for display.

/// How many characters of a value are displayed.
pub(crate) const VALUE_CHARS_MAX: usize = 1_000;

/// Returns a value for display, truncated to [`VALUE_CHARS_MAX`] characters.
pub(crate) fn text(value: &[u8]) -> String {
    excerpt(value, VALUE_CHARS_MAX)
}

/// Returns the first characters. Bytes that are not UTF-8 are replaced.
pub(crate) fn excerpt(text: &[u8], chars_max: usize) -> String {
    /// The length of the longest character in UTF-8.
    const CHAR_BYTES_MAX: usize = 4;
    let head = &text[..text.len().min(chars_max.saturating_mul(CHAR_BYTES_MAX))];
    String::from_utf8_lossy(head)
        .chars()
        .take(chars_max)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn excerpts_have_at_most_200_characters_of_any_size() {
        for text in ["a", "ä", "€", "𝄞"] {
            assert_eq!(excerpt(text.repeat(200).as_bytes(), 200), text.repeat(200));
            assert_eq!(excerpt(text.repeat(201).as_bytes(), 200), text.repeat(200));
        }
        assert_eq!(excerpt(b"a\xFF\0b", 200), "a\u{FFFD}\0b");
        assert_eq!(excerpt(&[0xFF; 900], 200), "\u{FFFD}".repeat(200));
        assert_eq!(excerpt(b"", 200), "");
    }
}
