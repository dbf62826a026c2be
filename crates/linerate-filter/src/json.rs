//! Reads JSON (RFC 8259) in place: only the values that are asked for, and many bytes at a time.

use std::cell::Cell;

use linerate_simd::json::{self, Marks, find_marks};

use crate::{Number, text::Text, value::Value};

/// The maximum nesting depth of lists and objects in a payload.
pub const JSON_DEPTH_MAX: usize = json::DEPTH_MAX;

const BLOCK_LEN: usize = u64::BITS as usize;

/// If a wanted key has at least this length in bytes, keys are examined one by one: the distance
/// from its opening quote to the colon is a block or more.
const LONG_KEY: usize = BLOCK_LEN - 2;

thread_local! {
    /// The allocation of the last reader, for reuse.
    static SPARE: Cell<Vec<Marks>> = const { Cell::new(Vec::new()) };
}

/// The length in blocks of the longest text whose marks stay allocated for the next reader.
const SPARE_BLOCKS_MAX: usize = 1_024;

/// Steps through the brackets, commas and colons of a text.
#[derive(Debug)]
pub(crate) struct Reader<'v> {
    bytes: &'v [u8],
    blocks: Vec<Marks>,
    has_backslashes: bool,
    /// The block in which the search for the next mark continues, and a mask of the bits not yet
    /// visited.
    block: usize,
    ahead: u64,
}

impl Drop for Reader<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.blocks.len() <= SPARE_BLOCKS_MAX {
            SPARE.set(std::mem::take(&mut self.blocks));
        }
    }
}

impl<'v> Reader<'v> {
    /// Creates a reader of a text. Call [`Self::begin`] next.
    #[inline]
    pub(crate) fn new(bytes: &'v [u8]) -> Self {
        Self {
            bytes,
            blocks: SPARE.take(),
            has_backslashes: false,
            block: 0,
            ahead: u64::MAX,
        }
    }

    /// Starts at the beginning of the text. Returns false if its brackets do not match, or if a
    /// string is not closed.
    ///
    /// This is not part of [`Self::new`] because a reader in an `Option` would be moved right after
    /// it is written.
    #[inline]
    pub(crate) fn begin(&mut self) -> bool {
        let outline = find_marks(self.bytes, &mut self.blocks);
        self.has_backslashes = outline.is_some_and(|outline| outline.has_backslashes);
        outline.is_some()
    }

    /// Returns the elements of a list.
    pub(crate) fn elements(list: &'v [u8]) -> impl Iterator<Item = Value<'v>> {
        let mut reader = Self::new(list);
        let mut next = match reader.begin() {
            false => None,
            true => reader.first_element().ok(),
        };
        std::iter::from_fn(move || {
            let mut value = Value::Error;
            let end = reader.value(next?, &mut value);
            let is_whole = reader.ends_value(end);
            next = reader.next_element().ok();
            Some(if is_whole { value } else { Value::Error })
        })
    }

    /// Calls `visit` with each key of an object.
    pub(crate) fn keys(map: &'v [u8], mut visit: impl FnMut(Text<'v>)) {
        let mut reader = Self::new(map);
        if reader.begin() {
            reader.enter();
            reader.fields(u64::MAX, Text::from_json, |_, key, _| visit(key));
        }
    }

    /// Returns the offset and the value of the first byte at or after `from` that is not a blank;
    /// the value is 0 at the end of the text.
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

    /// Moves past the next bracket, which opens a list or an object.
    #[inline]
    pub(crate) fn enter(&mut self) {
        self.next(|block| block.brackets);
    }

    /// Moves past the opening bracket of a list. Returns the offset of its first element, or that
    /// of the closing bracket as an `Err` if the list is empty.
    #[inline]
    pub(crate) fn first_element(&mut self) -> Result<usize, usize> {
        let open = self.next(|block| block.brackets);
        match self.first_byte(open + 1) {
            (_, b']') => Err(self.skip()),
            (at, _) => Ok(at),
        }
    }

    /// Moves past the next comma of the enclosing list. Returns the offset of the element after it,
    /// or that of the closing bracket as an `Err` if there are no more elements.
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

    /// Visits the fields of the enclosing object, moves past it, and returns the offset of its
    /// closing bracket.
    ///
    /// `read` receives the bytes between the quotes of a key, and whether they may contain escapes.
    /// If it returns a value, `visit` is called with that value and the offset after the colon.
    /// `lengths` has one bit for each wanted key length; the last bit stands for all larger
    /// lengths. It is ignored if the text contains backslashes, because a key with escapes has
    /// another length.
    ///
    /// A key is a string between an opening bracket or a comma, and a colon.
    #[inline]
    pub(crate) fn fields<T>(
        &mut self,
        lengths: u64,
        read: impl Fn(&'v [u8], bool) -> Option<T>,
        mut visit: impl FnMut(&mut Self, T, usize),
    ) -> usize {
        let lengths = match self.has_backslashes {
            false => lengths,
            true => u64::MAX,
        };
        'blocks: while let Some(marks) = self.blocks.get(self.block) {
            let (block, brackets) = (self.block, marks.brackets);
            let mut left = (brackets | self.colons_after(lengths)) & self.ahead;
            while left != 0 {
                let at = block * BLOCK_LEN + left.trailing_zeros() as usize;
                let bit = left & left.wrapping_neg();
                self.ahead = !(bit | (bit - 1));
                if brackets & bit != 0 {
                    if !matches!(self.bytes.get(at), Some(b'[' | b'{')) {
                        return at;
                    }
                    self.skip();
                } else if let Some(key) = self.key_before(at, lengths, &read) {
                    visit(self, key, at + 1);
                }
                if self.block != block {
                    continue 'blocks;
                }
                left &= self.ahead;
            }
            self.block += 1;
            self.ahead = u64::MAX;
        }
        self.bytes.len()
    }

    /// Reads the key before a colon of the current block, if its length is wanted.
    #[inline]
    fn key_before<T>(
        &self,
        colon: usize,
        lengths: u64,
        read: impl Fn(&'v [u8], bool) -> Option<T>,
    ) -> Option<T> {
        let marks = &self.blocks[self.block];
        let before = (1 << (colon % BLOCK_LEN)) - 1;
        let (from, to) = match marks.opening & before {
            0 => self.string_before(colon),
            opening => {
                let block = colon - colon % BLOCK_LEN;
                (block + last(opening), block + last(marks.closing & before))
            }
        };
        if lengths >> to.wrapping_sub(from + 1).min(63) & 1 == 0 {
            return None;
        }
        let raw = self.bytes.get(from + 1..to)?;
        read(raw, self.has_backslashes)
            .filter(|_| self.first_byte(to + 1).0 == colon && self.begins_field(from))
    }

    /// Returns the colons of the current block that may follow a key of a wanted length: a quote
    /// opens at the right distance before the colon, or there is something between the string and
    /// the colon. Returns all colons if long keys are wanted.
    #[inline]
    fn colons_after(&self, mut lengths: u64) -> u64 {
        let marks = &self.blocks[self.block];
        if lengths >> LONG_KEY != 0 {
            return marks.colons;
        }
        let (opening, closing) = match self.block {
            0 => (0, 0),
            block => (
                self.blocks[block - 1].opening,
                self.blocks[block - 1].closing,
            ),
        };
        let mut after = !(marks.closing << 1 | closing >> (BLOCK_LEN - 1));
        while lengths != 0 {
            // The distance from the opening quote to the colon.
            let far = lengths.trailing_zeros() as usize + 2;
            after |= marks.opening << far | opening >> (BLOCK_LEN - far);
            lengths &= lengths - 1;
        }
        marks.colons & after
    }

    /// Returns the offsets of the quotes of the last string before a colon, for a string that
    /// begins in an earlier block. Returns 0 for both if there is none.
    #[cold]
    fn string_before(&self, colon: usize) -> (usize, usize) {
        let (block, bit) = (colon / BLOCK_LEN, 1_u64 << (colon % BLOCK_LEN));
        let find = |kind: fn(&Marks) -> u64| {
            let own = kind(&self.blocks[block]) & (bit - 1);
            let before = self.blocks[..block].iter().map(kind);
            let mut backwards = (0..=block).rev().zip([own].into_iter().chain(before.rev()));
            let found = backwards.find(|(_, marks)| *marks != 0);
            found.map_or(0, |(place, marks)| place * BLOCK_LEN + last(marks))
        };
        (find(|marks| marks.opening), find(|marks| marks.closing))
    }

    /// Returns whether a string at this offset is the beginning of a field.
    #[inline]
    fn begins_field(&self, at: usize) -> bool {
        match self.bytes.get(..at).unwrap_or_default() {
            [.., b'{' | b','] => true,
            before => matches!(trim_end(before), [.., b'{' | b',']),
        }
    }

    /// Moves past the enclosing list or object, and returns the offset of its closing bracket.
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

    /// Reads the value that begins at `at`, and returns its end. Moves past the value if it is a
    /// list or an object.
    #[inline]
    pub(crate) fn value(&mut self, at: usize, value: &mut Value<'v>) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        let (constant, length) = match rest.first() {
            Some(b'"') => return self.string(at, value),
            Some(open @ (b'[' | b'{')) => {
                self.enter();
                let end = self.skip() + 1;
                let whole = self.between(at, end);
                *value = match open {
                    b'[' => Value::List(whole),
                    _ => Value::Map(whole),
                };
                return end;
            }
            Some(b'f') if rest.starts_with(b"false") => (Value::Bool(false), 5),
            Some(b'n') if rest.starts_with(b"null") => (Value::Null, 4),
            Some(b't') if rest.starts_with(b"true") => (Value::Bool(true), 4),
            _ => match Number::from_json(rest) {
                Some((number, length)) => {
                    *value = Value::Number(number);
                    return at + length;
                }
                None => (Value::Error, 0),
            },
        };
        *value = constant;
        at + length
    }

    /// Returns whether only blanks follow a value before the end of its field, element or text.
    #[inline]
    pub(crate) fn ends_value(&self, end: usize) -> bool {
        match self.first_byte(end) {
            (_, b',' | b']' | b'}') => true,
            (at, _) => at >= self.bytes.len(),
        }
    }

    /// Returns the bytes of a list or an object, including its brackets.
    #[inline]
    pub(crate) fn between(&self, open: usize, end: usize) -> &'v [u8] {
        self.bytes.get(open..end).unwrap_or_default()
    }

    #[inline]
    fn string(&self, at: usize, value: &mut Value<'v>) -> usize {
        let mut place = at / BLOCK_LEN;
        let mut closing = self.blocks[place].closing & (u64::MAX << (at % BLOCK_LEN));
        // Every string has a closing quote; `begin` has checked that.
        while closing == 0 && place + 1 < self.blocks.len() {
            place += 1;
            closing = self.blocks[place].closing;
        }
        let end = place * BLOCK_LEN + closing.trailing_zeros() as usize;
        let raw = self.bytes.get(at + 1..end);
        *value = match raw.and_then(|raw| Text::from_json(raw, self.has_backslashes)) {
            Some(text) => Value::Text(text),
            None => Value::Error,
        };
        end + 1
    }

    /// Moves past the next mark of some kind and returns its offset, or the end of the text if
    /// there is none.
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

/// Returns the position of the highest bit that is set in a mask; 0 if none is.
#[inline]
fn last(mask: u64) -> usize {
    (mask | 1).ilog2() as usize
}

/// Removes the blanks at the end of a text.
fn trim_end(mut text: &[u8]) -> &[u8] {
    while let [rest @ .., b' ' | b'\t' | b'\n' | b'\r'] = text {
        text = rest;
    }
    text
}
