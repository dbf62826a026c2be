//! JSON (RFC 8259), read in place.
//!
//! Everything is validated, also what nobody wants to know: a payload is JSON or it is not, whatever filters there are.
//! Beyond the grammar, characters must be whole (no lone surrogates), numbers must fit into a double, and nesting is
//! limited.

use crate::{
    Number,
    text::{self, Text},
    value::Value,
};

/// How deep lists and objects of a payload may be nested.
pub const JSON_DEPTH_MAX: usize = 127;

/// The payload is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Invalid;

/// A place in a text.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'v> {
    text: &'v str,
    at: usize,
}

impl<'v> Reader<'v> {
    pub(crate) fn new(text: &'v str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte, 0 at the end, where no byte of JSON is 0.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    /// Skips blanks and returns the next byte.
    #[inline]
    pub(crate) fn next_token(&mut self) -> u8 {
        loop {
            let byte = self.peek();
            if byte > b' ' || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return byte;
            }
            self.at += 1;
        }
    }

    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// Returns what was read since `from`.
    #[inline]
    pub(crate) fn since(&self, from: usize) -> &'v str {
        &self.text[from..self.at]
    }

    /// Goes on behind the next byte, which the caller has seen.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.at += 1;
    }

    /// Reads the key of a field and the colon behind it.
    #[inline]
    pub(crate) fn key(&mut self) -> Result<Text<'v>, Invalid> {
        if self.next_token() != b'"' {
            return Err(Invalid);
        }
        let key = self.string()?;
        if self.next_token() != b':' {
            return Err(Invalid);
        }
        self.at += 1;
        Ok(key)
    }

    /// Reads the value that begins with the next token, in so many lists and objects.
    pub(crate) fn value(&mut self, levels: usize) -> Result<Value<'v>, Invalid> {
        let first = self.next_token();
        let from = self.at;
        match first {
            b'"' => self.string().map(Value::Text),
            b'[' => {
                self.skip(levels)?;
                Ok(Value::List(self.since(from)))
            }
            b'{' => {
                self.skip(levels)?;
                Ok(Value::Map(self.since(from)))
            }
            b'f' => self.word("false", Value::Bool(false)),
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            _ => {
                self.number()?;
                Number::from_json(self.since(from))
                    .map(Value::Number)
                    .ok_or(Invalid)
            }
        }
    }

    /// Skips the value that begins with the next token, in so many lists and objects.
    pub(crate) fn skip(&mut self, levels: usize) -> Result<(), Invalid> {
        // A bit for each open bracket, the innermost last: 1 is an object.
        let mut open: u128 = 0;
        let mut depth = 0;
        loop {
            match self.next_token() {
                b'"' => drop(self.string()?),
                bracket @ (b'[' | b'{') => {
                    self.at += 1;
                    depth += 1;
                    if levels + depth > JSON_DEPTH_MAX {
                        return Err(Invalid);
                    }
                    let is_object = bracket == b'{';
                    open = open << 1 | u128::from(is_object);
                    // "]" and "}" are both two behind the bracket that they close.
                    if self.next_token() != bracket + 2 {
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                    self.at += 1;
                    open >>= 1;
                    depth -= 1;
                }
                b'f' => drop(self.word("false", ())?),
                b'n' => drop(self.word("null", ())?),
                b't' => drop(self.word("true", ())?),
                _ => self.skip_number()?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = open & 1 == 1;
                match (self.next_token(), is_object) {
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    (b']', false) | (b'}', true) => {
                        self.at += 1;
                        open >>= 1;
                        depth -= 1;
                    }
                    _ => return Err(Invalid),
                }
            }
        }
    }

    /// Reads a string, whose opening quote is the next byte.
    #[inline]
    fn string(&mut self) -> Result<Text<'v>, Invalid> {
        let bytes = self.text.as_bytes();
        let from = self.at + 1;
        let mut at = from;
        let mut is_escaped = false;
        loop {
            at = plain_end(bytes, at);
            match bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Text::from_json(&bytes[from..at], is_escaped));
                }
                Some(b'\\') => {
                    let (_, length) = text::escape(&bytes[at + 1..]).ok_or(Invalid)?;
                    is_escaped = true;
                    at += 1 + length;
                }
                _ => return Err(Invalid),
            }
        }
    }

    fn word<T>(&mut self, word: &str, value: T) -> Result<T, Invalid> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(Invalid);
        }
        self.at += word.len();
        Ok(value)
    }

    fn skip_number(&mut self) -> Result<(), Invalid> {
        let from = self.at;
        let has_exponent = self.number()?;
        // Only long numbers and those with an exponent can be beyond a double.
        let is_small = !has_exponent && self.at - from <= SMALL_DIGITS_MAX;
        match is_small || Number::from_json(self.since(from)).is_some() {
            true => Ok(()),
            false => Err(Invalid),
        }
    }

    /// Goes on behind a number; returns whether it has an exponent.
    #[inline]
    fn number(&mut self) -> Result<bool, Invalid> {
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits()?,
            _ => return Err(Invalid),
        }
        if self.peek() == b'.' {
            self.at += 1;
            self.digits()?;
        }
        let has_exponent = matches!(self.peek(), b'e' | b'E');
        if has_exponent {
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(has_exponent)
    }

    /// Goes on behind at least one digit.
    #[inline]
    fn digits(&mut self) -> Result<(), Invalid> {
        let from = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at > from { Ok(()) } else { Err(Invalid) }
    }
}

/// Numbers of so many characters without an exponent are within a double.
const SMALL_DIGITS_MAX: usize = 300;

/// Returns where the first quote, backslash or control character is, from `at` on.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest byte that is marked is one that is meant; those above it may be marked by its borrow.
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quotes = is_zero(word ^ (ONES * 0x22));
        let backslashes = is_zero(word ^ (ONES * 0x5c));
        let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let marks = quotes | backslashes | controls;
        if marks != 0 {
            return at + marks.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let is_special = |byte: &u8| matches!(byte, 0..=0x1f | b'"' | b'\\');
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::{JSON_DEPTH_MAX, Reader, plain_end};

    fn is_json(text: &str) -> bool {
        let mut reader = Reader::new(text);
        let skipped = reader.skip(0).is_ok();
        reader.next_token();
        let skipped = skipped && reader.is_at_end();
        let mut reader = Reader::new(text);
        let read = reader.value(0).is_ok();
        reader.next_token();
        assert_eq!(read && reader.is_at_end(), skipped, "{text}");
        skipped
    }

    #[test]
    fn what_is_json_and_what_is_not_is_as_serde_json_says() {
        for text in [
            "",
            " ",
            "{}",
            "[]",
            " [ ] ",
            "{\"a\":1}",
            "{\"a\" : [ 1 , {} ] }",
            "[1,]",
            "[,1]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "[}",
            "{]",
            "[1}",
            "{\"a\":1]",
            "1",
            "-1",
            "-",
            "+1",
            "01",
            "0",
            "-0",
            "1.",
            ".5",
            "1.5",
            "1e",
            "1e5",
            "1E+5",
            "1e-5",
            "1e999",
            "-1e999",
            "1e-999",
            "0e999",
            "1 2",
            "true",
            "tru",
            "truex",
            "nul",
            "null",
            "false",
            "\"",
            "\"a",
            "\"a\"",
            "\"\\\"",
            "\"\\u12\"",
            "\"\\ud800\"",
            "\"\\ud83e\\udd80\"",
            "\"\\x\"",
            "\"\t\"",
            "\"\u{7f}ü\"",
            "\u{feff}1",
            "NaN",
            "[1]]",
            "[[1]",
            "'a'",
            "{\"a\":1 \"b\":2}",
            "\u{b}1",
            "1\u{0}",
        ] {
            let expected = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(is_json(text), expected, "{text:?}");
            let within = format!("[{{\"k\":{text}}}]");
            let expected = serde_json::from_str::<serde_json::Value>(&within).is_ok();
            assert_eq!(is_json(&within), expected, "{within:?}");
        }
    }

    #[test]
    fn nesting_is_limited() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for (levels, expected) in [
                (JSON_DEPTH_MAX, true),
                (JSON_DEPTH_MAX + 1, false),
                (100_000, false),
            ] {
                let text = format!("{}1{}", open.repeat(levels), close.repeat(levels));
                assert_eq!(is_json(&text), expected);
                assert_eq!(
                    serde_json::from_str::<serde_json::Value>(&text).is_ok(),
                    expected
                );
            }
        }
    }

    #[test]
    fn strings_end_at_the_first_byte_that_ends_them_wherever_it_is() {
        for special in 0..=0xff_u8 {
            for at in 0..20 {
                let mut bytes = [b'a'; 30];
                bytes[at] = special;
                bytes[29] = b'"';
                let is_special = special < 0x20 || special == b'"' || special == b'\\';
                assert_eq!(plain_end(&bytes, 0), if is_special { at } else { 29 });
            }
        }
    }
}
