//! Checks that brackets are matching pairs.

use super::DEPTH_MAX;

/// The brackets that are open after the blocks so far.
#[derive(Clone, Debug)]
pub(super) struct Brackets {
    /// One bit for each open bracket, with the innermost in the lowest position: 1 is an object, 0
    /// an array. The highest bit that is set only marks the end.
    open: u128,
    /// True if a closing bracket did not match, or too many brackets were open.
    has_errors: bool,
}

impl Brackets {
    pub(super) const fn new() -> Self {
        Self {
            open: 1,
            has_errors: false,
        }
    }

    /// Returns whether each closing bracket matched its opening bracket, and no bracket is open.
    #[inline]
    pub(super) fn are_pairs(&self) -> bool {
        self.open == 1 && !self.has_errors
    }

    /// Opens and closes the brackets of a block.
    #[inline(always)]
    pub(super) fn block(&mut self, bytes: &[u8], mut brackets: u64) {
        const FULL: u128 = 1 << DEPTH_MAX;
        while brackets != 0 {
            let byte = bytes[brackets.trailing_zeros() as usize];
            brackets &= brackets - 1;
            // This bit distinguishes "{" and "}" from "[" and "]".
            let is_object = byte & 0x20 != 0;
            if matches!(byte, b'[' | b'{') {
                self.has_errors |= self.open >= FULL;
                self.open = self.open << 1 | u128::from(is_object);
            } else {
                self.has_errors |= self.open <= 1 || (self.open & 1 == 1) != is_object;
                self.open >>= 1;
            }
        }
    }
}
