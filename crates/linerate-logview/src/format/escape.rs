//! Escapes in JSON strings (RFC 8259 §7).

use memchr::memchr;

/// Appends `text` to `out` with its escapes decoded. The result is never longer than `text`.
///
/// Sequences that are not JSON escapes, such as the `\x22` of nginx, are kept unchanged.
pub(super) fn decode_json(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = memchr(b'\\', text) {
        let (before, escape) = text.split_at(at);
        out.extend_from_slice(before);
        let (char, len) = decode(escape).unwrap_or(('\\', 1));
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        text = &escape[len..];
    }
    out.extend_from_slice(text);
}

/// Returns the character that the escape at the start of `text` stands for, and its length.
fn decode(text: &[u8]) -> Option<(char, usize)> {
    let char = match text.get(1)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{C}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return decode_unicode(text),
        _ => return None,
    };
    Some((char, 2))
}

/// Decodes `\u00e4` or a pair of surrogates.
fn decode_unicode(text: &[u8]) -> Option<(char, usize)> {
    const LEN: usize = 6;
    let first = code_unit(text)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((
            char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
            LEN,
        ));
    }
    let second = code_unit(&text[LEN..]).filter(|unit| (0xDC00..0xE000).contains(unit));
    let Some(second) = second else {
        return Some((char::REPLACEMENT_CHARACTER, LEN));
    };
    let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    Some((char::from_u32(code)?, 2 * LEN))
}

fn code_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::decode_json;

    fn decoded(text: &[u8]) -> Vec<u8> {
        let mut out = b"before ".to_vec();
        decode_json(text, &mut out);
        assert!(out.len() <= b"before ".len() + text.len());
        out.split_off(b"before ".len())
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(decoded(br#"/a\/b\"c\\d"#), br#"/a/b"c\d"#);
        assert_eq!(decoded(br"\b\f\n\r\t"), b"\x08\x0C\n\r\t");
        assert_eq!(decoded(br"\u0041\u00e4\u20AC"), "Aä€".as_bytes());
        assert_eq!(decoded(br"\uD834\uDD1E."), "𝄞.".as_bytes());
    }

    #[test]
    fn invalid_escapes_stay_and_lone_surrogates_are_replaced() {
        assert_eq!(decoded(br"\x22\"), br"\x22\");
        assert_eq!(decoded(br"\u12"), br"\u12");
        assert_eq!(decoded(br"\u12g4"), br"\u12g4");
        assert_eq!(decoded(br"\uD834x"), "\u{FFFD}x".as_bytes());
        assert_eq!(decoded(br"\uDD1E"), "\u{FFFD}".as_bytes());
        assert_eq!(decoded(b"\xFF\0"), b"\xFF\0");
    }
}
