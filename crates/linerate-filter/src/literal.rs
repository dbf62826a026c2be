//! String and number literals in the notation of CEL.

use crate::{Number, Problem};

/// A string and its length in the text in bytes, or the offset in the text of an error and the
/// error.
type StringResult = Result<(Box<str>, usize), (usize, Problem)>;

/// Parses the number at the beginning of `text`, and returns it with its length in bytes.
/// `is_negated` is true if a minus sign precedes it, which is not allowed before an unsigned
/// number.
pub(crate) fn number(text: &str, is_negated: bool) -> Option<(Number, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize, is_digit: fn(&u8) -> bool| {
        from + bytes[from..]
            .iter()
            .take_while(|byte| is_digit(byte))
            .count()
    };
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = digits(2, u8::is_ascii_hexdigit);
        let number = u64::from_str_radix(&hex[..end - 2], 16).ok()?;
        return integer(text, number, end, is_negated);
    }
    let mut end = digits(0, u8::is_ascii_digit);
    let whole = end;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1, u8::is_ascii_digit);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let from = end + 1 + sign;
        end = digits(from.min(bytes.len()), u8::is_ascii_digit);
        if end <= from {
            return None;
        }
    }
    if end == whole {
        return integer(text, text[..end].parse().ok()?, end, is_negated);
    }
    let double: f64 = text[..end].parse().ok()?;
    let is_end = double.is_finite() && ends(text, end);
    is_end.then_some((Number::Double(double), end))
}

fn integer(text: &str, number: u64, end: usize, is_negated: bool) -> Option<(Number, usize)> {
    let is_unsigned = matches!(text.as_bytes().get(end), Some(b'u' | b'U'));
    let end = end + usize::from(is_unsigned);
    let is_in_range = match (is_unsigned, is_negated) {
        (false, _) => number <= (1 << 63) - u64::from(!is_negated),
        (true, is_negated) => !is_negated,
    };
    (is_in_range && ends(text, end)).then_some((Number::from_unsigned(number), end))
}

/// Returns whether a number may end here, which it may not if a letter or a digit follows.
fn ends(text: &str, end: usize) -> bool {
    let next = text.as_bytes().get(end);
    !next.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Parses the string at the beginning of `text`. Returns `None` if `text` begins with something
/// other than a string.
pub(crate) fn string(text: &str) -> Option<StringResult> {
    let prefix = text
        .bytes()
        .take_while(u8::is_ascii_alphabetic)
        .take(3)
        .count();
    let quote = text[prefix..]
        .chars()
        .next()
        .filter(|char| matches!(char, '"' | '\''))?;
    let is_raw = match &text[..prefix] {
        "" => false,
        "r" | "R" => true,
        "b" | "B" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB" => {
            let construct = "a bytes literal";
            return Some(Err((0, Problem::Unsupported { construct })));
        }
        _ => return None,
    };
    let triple = if quote == '"' { "\"\"\"" } else { "'''" };
    let is_triple = text[prefix..].starts_with(triple);
    let mark = if is_triple { 3 } else { 1 };
    Some(body(text, prefix + mark, (quote, mark), is_raw))
}

/// Parses the rest of a string whose opening quotes end at `from`.
fn body(text: &str, from: usize, (quote, mark): (char, usize), is_raw: bool) -> StringResult {
    let mut out = String::new();
    let mut at = from;
    loop {
        let rest = &text[at..];
        let Some(char) = rest.chars().next() else {
            return Err((0, Problem::UnclosedString));
        };
        let closing = rest
            .chars()
            .take_while(|char| *char == quote)
            .take(mark)
            .count();
        if closing == mark {
            return Ok((out.into(), at + mark));
        }
        match char {
            '\n' | '\r' if mark == 1 => return Err((0, Problem::UnclosedString)),
            '\\' if !is_raw => {
                let (char, length) = escape(&rest[1..]).ok_or((at, Problem::Escape))?;
                out.push(char);
                at += 1 + length;
            }
            char => {
                out.push(char);
                at += char.len_utf8();
            }
        }
    }
}

/// Decodes the part of an escape after the backslash. Returns the character and the number of bytes
/// read.
fn escape(rest: &str) -> Option<(char, usize)> {
    let coded = |from: usize, digits: usize, radix| {
        let code = rest.get(from..from + digits)?;
        let is_plain = code.bytes().all(|byte| char::from(byte).is_digit(radix));
        let code = is_plain.then(|| u32::from_str_radix(code, radix).ok())??;
        Some((char::from_u32(code)?, from + digits))
    };
    let plain = |char| Some((char, 1));
    match rest.chars().next()? {
        'a' => plain('\x07'),
        'b' => plain('\x08'),
        'f' => plain('\x0c'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\x0b'),
        char @ ('\\' | '?' | '"' | '\'' | '`') => plain(char),
        'x' | 'X' => coded(1, 2, 16),
        'u' => coded(1, 4, 16),
        'U' => coded(1, 8, 16),
        '0'..='3' => coded(0, 3, 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{number, string};
    use crate::Problem;

    #[test]
    fn numbers_follow_cel() {
        for (text, expected) in [
            ("0", "Int(0)"),
            ("17u", "Int(17)"),
            ("0x1F", "Int(31)"),
            ("0xFFFFFFFFFFFFFFFFU", "Uint(18446744073709551615)"),
            ("1.5", "Double(1.5)"),
            (".5", "Double(0.5)"),
            ("1e3", "Double(1000.0)"),
            ("2.5E-1", "Double(0.25)"),
        ] {
            let (number, length) = number(text, false).unwrap();
            assert_eq!(
                (format!("{number:?}").as_str(), length),
                (expected, text.len())
            );
        }
        assert_eq!(number("1.a", false).unwrap().1, 1);
        for text in [
            "18446744073709551616",
            "1e",
            "1e+",
            "0x",
            "1e999",
            "7x",
            "1.5u",
            "1_000",
        ] {
            assert!(number(text, false).is_none(), "{text}");
        }
        let least = "9223372036854775808";
        assert!(number(least, false).is_none() && number(least, true).is_some());
        assert!(number("9223372036854775809", true).is_none() && number("1u", true).is_none());
    }

    #[test]
    fn strings_follow_cel() {
        let read = |text: &str| {
            string(text)
                .unwrap()
                .map(|(text, length)| (text.into_string(), length))
        };
        for (text, expected) in [
            (r#""""#, ""),
            (r#""a'b""#, "a'b"),
            (r#"'a"b'"#, "a\"b"),
            (
                r"'\a\b\f\n\r\t\v\\\?\x41\u00fc\U0001F980\101'",
                "\x07\x08\x0c\n\r\t\x0b\\?Aü🦀A",
            ),
            (r"r'\n'", "\\n"),
            (r#"R"\""#, "\\"),
            ("'''a\n'b''c'''", "a\n'b''c"),
            (r#"r"""\""""#, "\\"),
            ("''''''", ""),
        ] {
            assert_eq!(read(text), Ok((expected.to_owned(), text.len())), "{text}");
        }
        for text in ["'a", "'a\n'", "'''a''", "\""] {
            assert_eq!(read(text), Err((0, Problem::UnclosedString)), "{text}");
        }
        for text in [
            r"'a\q'",
            r"'a\x4'",
            r"'a\ud800'",
            r"'a\U00110000'",
            r"'a\08'",
            r"'a\u+123'",
        ] {
            assert_eq!(read(text), Err((2, Problem::Escape)), "{text}");
        }
        assert!(matches!(
            read("b'x'"),
            Err((0, Problem::Unsupported { .. }))
        ));
        assert!(string("rr'x'").is_none() && string("x").is_none());
    }
}
