//! The order of tokens in JSON, decided for a block at a time.

use super::block::{BLOCK_LEN, Classes};
use super::strings::{Strings, all};
use super::{Block, DEPTH_MAX};

/// What the blocks so far mean for the next one, and what was seen in them.
///
/// What speaks of the byte before a block is 1 or 0; what speaks of where a block begins has all
/// bits set or none.
#[derive(Clone, Debug)]
pub(super) struct Grammar {
    strings: Strings,
    in_scalar: u64,
    /// Whether the last token was the end of a value or a key.
    after_end: u64,
    after_open: u64,
    after_colon: u64,
    after_key: u64,
    in_object: u64,
    /// Whether no list or object is open.
    at_root: u64,
    /// A bit for each open bracket, the innermost last: 1 is an object.
    open: u128,
    depth: usize,
    /// Tokens that may not be where they are, and control characters in strings.
    errors: u64,
    high: u64,
    has_long_scalars: bool,
}

/// Where the tokens of a block begin, by their kinds.
struct Tokens {
    closes: u64,
    colons: u64,
    commas: u64,
    opens: u64,
    scalars: u64,
    strings: u64,
}

impl Grammar {
    pub(super) const fn new() -> Self {
        Self {
            strings: Strings::new(),
            in_scalar: 0,
            after_end: 0,
            after_open: 0,
            after_colon: 0,
            after_key: 0,
            in_object: 0,
            at_root: u64::MAX,
            open: 0,
            depth: 0,
            errors: 0,
            high: 0,
            has_long_scalars: false,
        }
    }

    /// Returns whether all tokens were in order, and a value ends here.
    #[inline]
    pub(super) fn is_whole(&self) -> bool {
        self.errors == 0 && !self.strings.is_open() && self.depth == 0 && self.after_end == 1
    }

    #[inline]
    pub(super) fn has_backslashes(&self) -> bool {
        self.strings.has_backslashes()
    }

    #[inline]
    pub(super) fn is_ascii(&self) -> bool {
        self.high == 0
    }

    #[inline]
    pub(super) fn has_long_scalars(&self) -> bool {
        self.has_long_scalars
    }

    /// Returns where the tokens of the next block are.
    #[inline(always)]
    pub(super) fn block(&mut self, bytes: &[u8; BLOCK_LEN], classes: &Classes) -> Block {
        let (quotes, in_string) = self.strings.block(classes);
        self.errors |= classes.controls & in_string;
        self.high |= classes.high;

        let colons = classes.colons & !in_string;
        let commas = classes.commas & !in_string;
        let opens = classes.opens & !in_string;
        let closes = classes.closes & !in_string;
        let operators = colons | commas | opens | closes;
        let others = !(operators | classes.blanks);
        let plain = others & !quotes;
        let after_plain = plain << 1 | self.in_scalar;
        // Nothing separates a string from a scalar before it.
        self.errors |= quotes & in_string & after_plain;
        let starts = others & !after_plain & !(in_string ^ quotes);
        self.in_scalar = plain >> 63;

        let scalars = starts & !quotes;
        let others = plain & !in_string & !classes.digits;
        let zeros = scalars & classes.zeros & (classes.digits >> 1 | 1 << 63);
        self.has_long_scalars |= plain & !in_string == u64::MAX;
        let tokens = Tokens {
            closes,
            colons,
            commas,
            opens,
            scalars,
            strings: starts & quotes,
        };
        self.check(bytes, &tokens);
        Block {
            odd: others & !(others << 1) | zeros,
            tokens: operators | starts,
        }
    }

    #[inline(always)]
    fn check(&mut self, bytes: &[u8; BLOCK_LEN], tokens: &Tokens) {
        let Tokens {
            closes,
            colons,
            commas,
            opens,
            scalars,
            strings,
        } = *tokens;
        let tokens = closes | colons | commas | opens | scalars | strings;
        let (in_object, at_root) = match opens | closes {
            0 => (self.in_object, self.at_root),
            brackets => self.nest(bytes, brackets, opens),
        };
        let after_end = next(tokens, strings | scalars | closes, &mut self.after_end);
        let after_open = next(tokens, opens, &mut self.after_open);
        let after_colon = next(tokens, colons, &mut self.after_colon);
        // What follows an opening bracket, a comma or a colon, or is first.
        let begins = tokens & !after_end;
        let keys = strings & begins & in_object & !after_colon;
        let after_key = next(tokens, keys, &mut self.after_key);
        let empty = closes & after_open;
        self.errors |= (after_end & !(commas | colons | closes))
            | (begins & !(strings | scalars | opens | empty))
            | (begins & in_object & !(after_colon | keys | empty))
            | (colons ^ after_key)
            | (commas & at_root);
    }

    /// Opens and closes the brackets of a block. Returns which of its bytes are in an object and
    /// which are in neither a list nor an object; opening brackets belong to what is around them,
    /// closing ones to what they close.
    #[inline(always)]
    fn nest(&mut self, bytes: &[u8; BLOCK_LEN], mut brackets: u64, opens: u64) -> (u64, u64) {
        let (mut in_object, mut at_root, mut rest) = (0, 0, u64::MAX);
        while brackets != 0 {
            let so_far = brackets ^ (brackets - 1);
            in_object |= rest & so_far & self.in_object;
            at_root |= rest & so_far & self.at_root;
            rest &= !so_far;
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            let byte = bytes[at as usize];
            if opens >> at & 1 == 1 {
                self.open = self.open << 1 | u128::from(byte == b'{');
                self.depth += 1;
                self.errors |= u64::from(self.depth > DEPTH_MAX);
            } else {
                let is_object = self.open & 1 == 1;
                self.errors |= u64::from(self.depth == 0 || is_object != (byte == b'}'));
                self.open >>= 1;
                self.depth = self.depth.saturating_sub(1);
            }
            self.in_object = all(self.open as u64 & 1);
            self.at_root = all(u64::from(self.depth == 0));
        }
        (
            in_object | rest & self.in_object,
            at_root | rest & self.at_root,
        )
    }
}

/// Returns the tokens that follow those in `from`; `carry` is whether the token before the block is
/// one of these, and becomes whether the last token of the block is.
#[inline(always)]
fn next(tokens: u64, from: u64, carry: &mut u64) -> u64 {
    let (sum, is_beyond) = (from << 1 | *carry).overflowing_add(!tokens);
    *carry = from >> 63 | u64::from(is_beyond);
    sum & tokens
}
