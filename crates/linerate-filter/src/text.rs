//! Strings, which are unescaped only where it matters.

use std::{borrow::Cow, cmp::Ordering};

use linerate_simd::utf8;
use memchr::memmem;

/// A string of a payload, as written between the quotes, or a string of a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'v> {
    raw: &'v [u8],
    /// True if the string contains a backslash.
    is_escaped: bool,
}

impl<'v> Text<'v> {
    pub(crate) fn plain(text: &'v str) -> Self {
        Self {
            raw: text.as_bytes(),
            is_escaped: false,
        }
    }

    /// Creates a text from the bytes between the quotes of a JSON string. Returns `None` if they
    /// contain control characters, invalid UTF-8 or invalid escapes.
    #[inline]
    pub(crate) fn from_json(raw: &'v [u8], may_be_escaped: bool) -> Option<Self> {
        let is_escaped = may_be_escaped && memchr::memchr(b'\\', raw).is_some();
        is_valid(raw, is_escaped).then_some(Self { raw, is_escaped })
    }

    /// Returns the string without escapes.
    #[inline]
    pub(crate) fn decoded(self) -> Cow<'v, [u8]> {
        match self.is_escaped {
            false => Cow::Borrowed(self.raw),
            true => Cow::Owned(unescape(self.raw)),
        }
    }

    /// Returns the number of characters.
    pub(crate) fn size(self) -> u64 {
        let decoded = self.decoded();
        let begins = |byte: &&u8| **byte & 0xc0 != 0x80;
        decoded.iter().filter(begins).count() as u64
    }

    pub(crate) fn contains(self, part: Self) -> bool {
        memmem::find(&self.decoded(), &part.decoded()).is_some()
    }

    pub(crate) fn starts_with(self, part: Self) -> bool {
        self.beginning(part).starts_with(&part.decoded())
    }

    /// Returns the decoded string. If it is long, returns only a beginning that is long enough for
    /// a comparison with `other`.
    fn beginning(self, other: Self) -> Cow<'v, [u8]> {
        if self.is_escaped && !other.is_escaped {
            let cut = (other.raw.len() + 2) * ESCAPE_BYTES_MAX;
            return Cow::Owned(unescape(&self.raw[..cut.min(self.raw.len())]));
        }
        self.decoded()
    }

    /// Returns whether an escaped string can decode to `bytes` bytes: an escape is longer than the
    /// character it stands for.
    fn may_mean(self, bytes: usize) -> bool {
        (bytes..=bytes * ESCAPED_BYTES_MAX).contains(&self.raw.len())
    }

    pub(crate) fn ends_with(self, part: Self) -> bool {
        self.decoded().ends_with(&part.decoded())
    }
}

impl PartialEq for Text<'_> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        match (self.is_escaped, other.is_escaped) {
            (false, false) => self.raw == other.raw,
            (true, false) => self.may_mean(other.raw.len()) && self.decoded() == other.raw,
            (false, true) => other == self,
            (true, true) => self.decoded() == other.decoded(),
        }
    }
}

impl PartialOrd for Text<'_> {
    /// Compares by code points; UTF-8 bytes sort in the same order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.beginning(*other).cmp(&other.beginning(*self)))
    }
}

/// The largest number of bytes that an escape has for each byte it decodes to.
const ESCAPED_BYTES_MAX: usize = 6;

/// The length in bytes of the longest escape, a surrogate pair.
const ESCAPE_BYTES_MAX: usize = 12;

/// Decodes a string that was validated. Drops an escape that is cut off at the end.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let Some((char, length)) = escape(&rest[at + 1..]) else {
            return out;
        };
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &rest[at + 1 + length..];
    }
    out.extend_from_slice(rest);
    out
}

/// Strings shorter than this, in bytes, are checked byte by byte.
const SHORT: usize = 16;

/// Returns whether the inside of a JSON string is valid: UTF-8 without control characters, and with
/// no escapes other than those of JSON.
fn is_valid(raw: &[u8], is_escaped: bool) -> bool {
    let is_plain = |byte: &u8| (0x20..0x80).contains(byte);
    let are_plain = match raw.len() {
        0..SHORT => raw.iter().all(is_plain),
        // Checks all bytes instead of stopping at the first bad one, so that the loop can be
        // vectorized.
        _ => raw.iter().fold(true, |are, byte| are & is_plain(byte)),
    };
    (are_plain || raw.iter().all(|byte| *byte >= 0x20) && utf8::validate(raw).is_ok())
        && (!is_escaped || has_valid_escapes(raw))
}

/// Returns whether every backslash begins a valid JSON escape.
fn has_valid_escapes(mut rest: &[u8]) -> bool {
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let Some((_, length)) = escape(&rest[at + 1..]) else {
            return false;
        };
        rest = &rest[at + 1 + length..];
    }
    true
}

/// Decodes the part of a JSON escape after the backslash. Returns the character and the number of
/// bytes read, or `None` if the escape is malformed.
pub(crate) fn escape(rest: &[u8]) -> Option<(char, usize)> {
    let char = match rest.first()? {
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'b' => '\x08',
        b'f' => '\x0c',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(rest),
        _ => return None,
    };
    Some((char, 1))
}

/// Decodes `u` and four hexadecimal digits, or two such escapes that form a surrogate pair
/// (RFC 8259 §7).
fn unicode(rest: &[u8]) -> Option<(char, usize)> {
    let high = hex(rest.get(1..5)?)?;
    if !(0xd800..0xdc00).contains(&high) {
        return Some((char::from_u32(high)?, 5));
    }
    let low = rest.get(5..11).and_then(|low| low.strip_prefix(b"\\u"))?;
    let low = hex(low).filter(|low| (0xdc00..0xe000).contains(low))?;
    let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    Some((char::from_u32(code)?, 11))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code, digit| {
        Some(code << 4 | char::from(*digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Greater, Less};

    use super::{Text, escape};

    fn json(raw: &str) -> Text<'_> {
        Text::from_json(raw.as_bytes(), true).expect("the text is a valid JSON string")
    }

    #[test]
    fn escaped_strings_equal_their_decoded_form() {
        for (raw, plain) in [
            (r"err\u006fr", "error"),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\x08\x0c\n\r\t"),
            (r"\ud83e\udD80", "🦀"),
            (r"\u0000x", "\0x"),
            ("plain", "plain"),
        ] {
            let (text, plain) = (json(raw), Text::plain(plain));
            assert!(text == plain, "{raw}");
            assert!(plain == text, "{raw}");
            assert_eq!(text.size(), plain.size());
            assert!(text.starts_with(plain) && text.ends_with(plain) && text.contains(plain));
            assert_eq!(text.partial_cmp(&plain), Some(std::cmp::Ordering::Equal));
        }
        assert!(json(r"a\n") != Text::plain("a\\n") && json(r"\u0061") != Text::plain("b"));
    }

    #[test]
    fn parts_are_found_in_escaped_strings() {
        let long = format!(r"\u0061b\ud83e\udd80{}\u0063", "x".repeat(100));
        let text = json(&long);
        assert!(text.starts_with(Text::plain("ab🦀x")) && !text.starts_with(Text::plain("abx")));
        assert!(text.starts_with(Text::plain("")) && text.starts_with(json(r"\u0061")));
        assert!(text.ends_with(Text::plain("xc")) && !text.ends_with(Text::plain("bc")));
        assert!(text.contains(Text::plain("🦀")) && !text.contains(Text::plain("u0061")));
        assert_eq!(text.size(), 104);
    }

    #[test]
    fn only_the_beginning_of_a_long_escaped_string_is_compared() {
        let long = format!(r"\u0061b\ud83e\udd80{}", r"\u00fc".repeat(1_000));
        let text = json(&long);
        for (plain, expected) in [
            ("", Greater),
            ("a", Greater),
            ("ab🦀", Greater),
            ("ab🦀ü", Greater),
            ("ab🦀v", Greater),
            ("ac", Less),
            ("b", Less),
        ] {
            let plain = Text::plain(plain);
            assert_eq!(text.partial_cmp(&plain), Some(expected), "{plain:?}");
            assert_eq!(plain.partial_cmp(&text), Some(expected.reverse()));
            assert!(text != plain);
            assert!(plain != text);
            assert!(text.beginning(plain).len() < 150);
        }
        let exact = json(r"\u0061\u0062\u0063");
        assert!(exact == Text::plain("abc") && Text::plain("abc") == exact);
        assert!(exact != Text::plain("ab") && exact != Text::plain("abcd"));
    }

    #[test]
    fn invalid_json_strings_are_refused() {
        for raw in [
            &b"a\nb"[..],
            b"\0",
            b"\x1f",
            b"\xff",
            b"\xc3",
            b"\xed\xa0\x80",
        ] {
            assert!(Text::from_json(raw, false).is_none(), "{raw:?}");
        }
        assert!(Text::from_json("\u{7f}\u{80}ü🦀".as_bytes(), false).is_some());
    }

    #[test]
    fn malformed_escapes_are_detected() {
        for rest in [
            "",
            "x",
            "u",
            "u12",
            "u12g4",
            "ud800",
            r"ud800\u0041",
            r"ud800\n1234",
            "udc00",
            r"ud800\ud80",
        ] {
            assert_eq!(escape(rest.as_bytes()), None, "{rest}");
            let raw = format!("x\\{rest}");
            assert!(Text::from_json(raw.as_bytes(), true).is_none(), "{raw}");
        }
    }
}
