//! Quoted fields, in which quotes sent by the client are escaped.
//!
//! nginx writes `"` and `\` as `\x22` and `\x5C`, Apache httpd as `\"` and `\\`. A quote therefore
//! ends the field unless it is preceded by an odd number of backslashes.

use memchr::memchr;

/// Splits at the closing quote. Returns the field, as written, and what follows the quote.
///
/// `text` must begin after the opening quote. Returns `None` if there is no closing quote.
#[inline]
pub(super) fn split(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    loop {
        let end = from + memchr(b'"', &text[from..])?;
        // Only the bytes since the last quote, so that each byte is examined once.
        if !ends_in_escape(&text[from..end]) {
            return Some((&text[..end], &text[end + 1..]));
        }
        from = end + 1;
    }
}

#[inline]
fn ends_in_escape(text: &[u8]) -> bool {
    let backslashes = text.iter().rev().take_while(|&&byte| byte == b'\\');
    backslashes.count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn field_ends_at_the_first_quote_that_is_not_escaped() {
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"\" rest", b"", b" rest"),
            (b"a\" rest", b"a", b" rest"),
            (br#"a\x22b" rest"#, br"a\x22b", b" rest"),
            (br#"a\"b" rest"#, br#"a\"b"#, b" rest"),
            (br#"a\\" rest"#, br"a\\", b" rest"),
            (br#"a\\\"\"\\" rest"#, br#"a\\\"\"\\"#, b" rest"),
        ];
        for (text, field, rest) in cases {
            assert_eq!(split(text), Some((field, rest)));
        }
    }

    #[test]
    fn field_without_closing_quote_is_refused() {
        for text in [&b""[..], b"a", br#"a\""#, br#"\\\""#] {
            assert_eq!(split(text), None);
        }
    }
}
