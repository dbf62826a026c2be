//! Tokens, comma-separated lists and white space in header values (RFC 9110 §5.6).

/// Returns whether `byte` is allowed in a token (RFC 9110 §5.6.2).
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether `bytes` is a token: not empty, and only token characters.
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| is_token_byte(byte))
}

/// Returns the index of the first byte that is not allowed in a header value (RFC 9110 §5.5).
pub(super) fn invalid_value_byte(value: &[u8]) -> Option<usize> {
    value
        .iter()
        .position(|&byte| (byte < 0x20 && byte != b'\t') || byte == 0x7F)
}

/// Strips spaces and tabs from both ends (OWS, RFC 9110 §5.6.3).
pub(super) fn trim_ows(bytes: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = bytes.iter().position(is_text).unwrap_or(bytes.len());
    let end = bytes
        .iter()
        .rposition(is_text)
        .map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// Returns the elements of a list that may be spread over several header lines, without the empty
/// elements (RFC 9110 §5.6.1.2: "A recipient MUST parse and ignore a reasonable number of empty
/// list elements"). Does not support values with quoted strings.
pub(super) fn elements<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
) -> impl Iterator<Item = &'a [u8]> {
    lines
        .flat_map(|line| line.split(|&byte| byte == b','))
        .map(trim_ows)
        .filter(|element| !element.is_empty())
}

/// Returns whether a list contains `token`, ignoring case.
pub(super) fn list_contains<'a>(lines: impl Iterator<Item = &'a [u8]>, token: &str) -> bool {
    elements(lines).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn lists_skip_empty_elements_and_white_space() {
        let lines = [&b" a ,, b\t"[..], b"", b",c d,"];
        let found: Vec<_> = elements(lines.into_iter()).collect();
        assert_eq!(found, [&b"a"[..], b"b", b"c d"]);
    }

    #[test]
    fn only_white_space_trims_to_nothing() {
        assert_eq!(trim_ows(b" \t "), b"");
        assert_eq!(trim_ows(b""), b"");
    }

    #[test]
    fn tokens_follow_rfc_9110() {
        let tokens = (0..=0xFF_u8).filter(|&byte| is_token_byte(byte)).count();
        assert_eq!(tokens, 26 + 26 + 10 + 15);
        assert!(!is_token(b""));
        assert!(!is_token(b"a b"));
        assert!(!is_token("é".as_bytes()));
    }
}
