//! JSON (RFC 8259), read in place.
//!
//! A [`Reader`] finds values, and [`is_json`] validates, both much faster than a byte at a time. Reading comes first:
//! what is found in a text that is not JSON means nothing, but nothing goes wrong either, and most filters do not match.

use linerate_simd::{
    json::{self, Marks, Structure, find_marks},
    utf8,
};

use crate::{
    Number,
    text::{self, Text},
    value::Value,
};

/// How deep lists and objects of a payload may be nested.
pub const JSON_DEPTH_MAX: usize = json::DEPTH_MAX;

/// The payload is not JSON.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Invalid;

const BLOCK_LEN: usize = u64::BITS as usize;

/// Goes through the brackets, commas and colons of a text.
#[derive(Debug)]
pub(crate) struct Reader<'v> {
    bytes: &'v [u8],
    blocks: Vec<Marks>,
    has_backslashes: bool,
    /// The block in which the next mark is searched, and its bits that are left.
    block: usize,
    ahead: u64,
}

impl<'v> Reader<'v> {
    /// Begins at the start of a text.
    #[inline]
    pub(crate) fn new(bytes: &'v [u8]) -> Self {
        let mut blocks = Vec::with_capacity(bytes.len().div_ceil(BLOCK_LEN));
        let has_backslashes = find_marks(bytes, |block| blocks.push(block));
        Self {
            bytes,
            blocks,
            has_backslashes,
            block: 0,
            ahead: u64::MAX,
        }
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(list: &'v [u8]) -> impl Iterator<Item = Value<'v>> {
        let mut reader = Self::new(list);
        let mut next = reader.first_element().ok();
        std::iter::from_fn(move || {
            let value = reader.value(next?);
            next = reader.next_element().ok();
            Some(value)
        })
    }

    /// Returns the keys of an object.
    pub(crate) fn keys(map: &'v [u8]) -> impl Iterator<Item = Text<'v>> {
        let mut reader = Self::new(map);
        reader.enter();
        std::iter::from_fn(move || {
            let (key, _) = reader.next_key(|_| true).ok()?;
            Some(key)
        })
    }

    /// Returns the first byte that is not a blank, from an offset on; 0 at the end.
    #[inline]
    pub(crate) fn first_byte(&self, from: usize) -> (usize, u8) {
        let mut at = from;
        loop {
            match self.bytes.get(at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => at += 1,
                Some(byte) => return (at, *byte),
                None => return (at, 0),
            }
        }
    }

    /// Continues behind the next bracket, which opens a list or an object.
    #[inline]
    pub(crate) fn enter(&mut self) {
        self.next(|block| block.brackets);
    }

    /// Continues behind the opening bracket of a list; returns where its first element begins, or else its closing
    /// bracket.
    #[inline]
    pub(crate) fn first_element(&mut self) -> Result<usize, usize> {
        let open = self.next(|block| block.brackets);
        match self.first_byte(open + 1) {
            (_, b']') => Err(self.skip()),
            (at, _) => Ok(at),
        }
    }

    /// Continues behind the next comma of the list around it; returns where the element begins, or else the closing
    /// bracket.
    #[inline]
    pub(crate) fn next_element(&mut self) -> Result<usize, usize> {
        loop {
            let at = self.next(|block| block.commas | block.brackets);
            match self.bytes.get(at) {
                Some(b',') => return Ok(self.first_byte(at + 1).0),
                Some(b'[' | b'{') => drop(self.skip()),
                _ => return Err(at),
            }
        }
    }

    /// Continues behind the next key of the object around it for which `is_wanted` may be true, and its colon; returns
    /// it with where its value begins, or else the closing bracket. What `is_wanted` says of escaped keys is ignored.
    #[inline]
    pub(crate) fn next_key(
        &mut self,
        is_wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(Text<'v>, usize), usize> {
        while let Some(marks) = self.blocks.get(self.block).copied() {
            let mut found = (marks.colons | marks.brackets) & self.ahead;
            while found != 0 {
                let bit = found & found.wrapping_neg();
                let at = self.block * BLOCK_LEN + found.trailing_zeros() as usize;
                if marks.colons & bit == 0 {
                    self.ahead = !(bit | (bit - 1));
                    if !matches!(self.bytes.get(at), Some(b'[' | b'{')) {
                        return Err(at);
                    }
                    self.skip();
                    break;
                }
                found ^= bit;
                let raw = match marks.opening & (bit - 1) {
                    0 => self.key_before(at),
                    opening => self.up_to_quote(self.block * BLOCK_LEN + last(opening) + 1, at),
                };
                if self.has_backslashes || is_wanted(raw) {
                    self.ahead = !(bit | (bit - 1));
                    return Ok((self.text(raw), at + 1));
                }
            }
            if found == 0 {
                self.block += 1;
                self.ahead = u64::MAX;
            }
        }
        Err(self.bytes.len())
    }

    /// Continues behind the list or object around it, and returns where its closing bracket is.
    pub(crate) fn skip(&mut self) -> usize {
        let mut depth = 1_usize;
        loop {
            let at = self.next(|block| block.brackets);
            match self.bytes.get(at) {
                Some(b'[' | b'{') => depth += 1,
                Some(_) => depth -= 1,
                None => return at,
            }
            if depth == 0 {
                return at;
            }
        }
    }

    /// Returns the key before a colon, if it begins in an earlier block.
    fn key_before(&self, colon: usize) -> &'v [u8] {
        let before = &self.blocks[..colon / BLOCK_LEN];
        let place = before.iter().rposition(|block| block.opening != 0);
        let from = place.map_or(0, |place| {
            place * BLOCK_LEN + last(before[place].opening) + 1
        });
        self.up_to_quote(from, colon)
    }

    /// Returns what is from `from` up to the last quote before `end`.
    #[inline]
    fn up_to_quote(&self, from: usize, end: usize) -> &'v [u8] {
        match self.bytes.get(from..end).unwrap_or_default() {
            [raw @ .., b'"'] => raw,
            raw => &raw[..memchr::memrchr(b'"', raw).unwrap_or(0)],
        }
    }

    /// Returns the value that begins at `at`. Continues behind it if it is a list or an object.
    pub(crate) fn value(&mut self, at: usize) -> Value<'v> {
        let Some(rest) = self.bytes.get(at..) else {
            return Value::Error;
        };
        match rest.first() {
            Some(b'"') => self.string(at),
            Some(b'[') => {
                self.enter();
                let close = self.skip();
                Value::List(self.between(at, close))
            }
            Some(b'{') => {
                self.enter();
                let close = self.skip();
                Value::Map(self.between(at, close))
            }
            Some(b'f') => Value::Bool(false),
            Some(b'n') => Value::Null,
            Some(b't') => Value::Bool(true),
            _ => {
                let text = number(rest).ok();
                let number = text.and_then(|(text, _)| Number::from_json(text));
                number.map_or(Value::Error, Value::Number)
            }
        }
    }

    /// Returns a list or an object with its brackets.
    #[inline]
    pub(crate) fn between(&self, open: usize, close: usize) -> &'v [u8] {
        self.bytes.get(open..=close).unwrap_or_default()
    }

    fn string(&self, at: usize) -> Value<'v> {
        let mut place = at / BLOCK_LEN;
        let mut closing = self.blocks[place].closing & (u64::MAX << (at % BLOCK_LEN));
        while closing == 0 {
            place += 1;
            match self.blocks.get(place) {
                Some(block) => closing = block.closing,
                None => return Value::Error,
            }
        }
        let end = place * BLOCK_LEN + closing.trailing_zeros() as usize;
        let raw = self.bytes.get(at + 1..end).unwrap_or_default();
        Value::Text(self.text(raw))
    }

    #[inline]
    fn text(&self, raw: &'v [u8]) -> Text<'v> {
        let is_escaped = self.has_backslashes && memchr::memchr(b'\\', raw).is_some();
        Text::from_json(raw, is_escaped)
    }

    /// Continues behind the next mark of some kind, and returns where it is; the end if there is none.
    #[inline]
    fn next(&mut self, kind: impl Fn(&Marks) -> u64) -> usize {
        while let Some(block) = self.blocks.get(self.block) {
            let found = kind(block) & self.ahead;
            if found != 0 {
                self.ahead = !(found ^ (found - 1));
                return self.block * BLOCK_LEN + found.trailing_zeros() as usize;
            }
            self.block += 1;
            self.ahead = u64::MAX;
        }
        self.bytes.len()
    }
}

/// Returns the last bit of a mask that has one.
#[inline]
fn last(mask: u64) -> usize {
    63_usize.saturating_sub(mask.leading_zeros() as usize)
}

/// Returns whether all of a text is JSON.
///
/// Beyond the grammar, characters must be whole (no lone surrogates), numbers must fit into a double, and nesting is
/// limited.
pub(crate) fn is_json(bytes: &[u8]) -> bool {
    let Some(structure) = Structure::of(bytes) else {
        return false;
    };
    // A backslash outside of strings belongs to what is neither a number nor a word.
    (structure.is_ascii() || utf8::validate(bytes).is_ok())
        && (!structure.has_backslashes() || text::has_valid_escapes(bytes))
        && check_scalars(bytes, &structure).is_ok()
}

fn check_scalars(bytes: &[u8], structure: &Structure) -> Result<(), Invalid> {
    let blocks = structure.blocks();
    for (place, block) in blocks.iter().enumerate() {
        let mut bits = match structure.has_long_scalars() {
            true => block.tokens,
            false => block.odd,
        };
        while bits != 0 {
            let (mut place, bit) = (place, bits.trailing_zeros());
            let mut tokens = block.tokens & (u64::MAX >> (63 - bit));
            while tokens == 0 && place > 0 {
                place -= 1;
                tokens = blocks[place].tokens;
            }
            let at = place * BLOCK_LEN + last(tokens);
            if !matches!(bytes[at], b'"' | b'[' | b']' | b'{' | b'}' | b',' | b':') {
                check_scalar(&bytes[at..])?;
            }
            bits &= bits - 1;
        }
    }
    Ok(())
}

/// Numbers of so many characters without an exponent are within a double.
const SMALL_DIGITS_MAX: usize = 300;

/// Returns whether a text begins with a number or a word.
#[inline]
fn check_scalar(text: &[u8]) -> Result<(), Invalid> {
    let rest = match text.first() {
        Some(b'f') => text.strip_prefix(b"false").ok_or(Invalid)?,
        Some(b'n') => text.strip_prefix(b"null").ok_or(Invalid)?,
        Some(b't') => text.strip_prefix(b"true").ok_or(Invalid)?,
        _ => {
            let (number, has_exponent) = number(text)?;
            // Only long numbers and those with an exponent can be beyond a double.
            let is_small = !has_exponent && number.len() <= SMALL_DIGITS_MAX;
            if !is_small && Number::from_json(number).is_none() {
                return Err(Invalid);
            }
            &text[number.len()..]
        }
    };
    match rest {
        [] | [b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r', ..] => Ok(()),
        _ => Err(Invalid),
    }
}

/// Returns the number that a text begins with, and whether it has an exponent.
#[inline]
fn number(text: &[u8]) -> Result<(&[u8], bool), Invalid> {
    let mut rest = text.strip_prefix(b"-").unwrap_or(text);
    rest = match rest {
        [b'0', rest @ ..] => rest,
        _ => digits(rest)?,
    };
    if let [b'.', fraction @ ..] = rest {
        rest = digits(fraction)?;
    }
    let has_exponent = matches!(rest, [b'e' | b'E', ..]);
    if has_exponent {
        rest = match &rest[1..] {
            [b'+' | b'-', rest @ ..] | rest => digits(rest)?,
        };
    }
    Ok((&text[..text.len() - rest.len()], has_exponent))
}

/// Returns what follows at least one digit.
#[inline]
fn digits(text: &[u8]) -> Result<&[u8], Invalid> {
    let mut rest = text;
    while let [b'0'..=b'9', next @ ..] = rest {
        rest = next;
    }
    if rest.len() < text.len() {
        Ok(rest)
    } else {
        Err(Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::JSON_DEPTH_MAX;

    fn is_json(text: &str) -> bool {
        super::is_json(text.as_bytes())
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
            "1\"a\"",
            "\"a\"1",
            "\"a\"\"b\"",
            "null\"a\"",
            "truefalse",
            "1\\",
            "\\",
            "\\\"a\"",
            "1\u{c}",
            "\u{1a}",
            "{\"a\"  :  \"b\"  }",
            "{\"a\\\"\":\"\\\\\"}",
            "\"\\\\\"\"",
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
}
