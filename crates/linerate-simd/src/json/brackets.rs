//! Whether brackets are pairs.

use super::DEPTH_MAX;

/// The brackets that are open after the blocks so far.
#[derive(Clone, Debug)]
pub(super) struct Brackets {
    /// A bit for each, the innermost last: 1 is an object. The first bit that is set stands for none.
    open: u128,
    /// Whether one closed what was not open, or too many were open.
    has_errors: bool,
}

impl Brackets {
    pub(super) const fn new() -> Self {
        Self {
            open: 1,
            has_errors: false,
        }
    }

    /// Whether each bracket closed one of its kind, and none is open.
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
            // The bit by which "{" and "}" differ from "[" and "]".
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
