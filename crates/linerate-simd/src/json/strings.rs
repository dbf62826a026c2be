//! Determines which bytes of JSON are in strings.

use super::block::Classes;

/// The state after the blocks so far, on which the next block depends.
#[derive(Clone, Debug)]
pub(super) struct Strings {
    /// All bits set if the next byte is in a string, and none otherwise.
    is_open: u64,
    /// 1 if the next byte is escaped.
    is_escaped: u64,
    backslashes: u64,
    /// Backslashes that were outside of strings.
    outside: u64,
}

impl Strings {
    pub(super) const fn new() -> Self {
        Self {
            is_open: 0,
            is_escaped: 0,
            backslashes: 0,
            outside: 0,
        }
    }

    /// Returns whether no string is open and no backslash was outside of strings.
    #[inline]
    pub(super) fn are_whole(&self) -> bool {
        self.is_open == 0 && self.outside == 0
    }

    #[inline]
    pub(super) fn have_backslashes(&self) -> bool {
        self.backslashes != 0
    }

    /// Returns two masks of the next block: the quotes that are not escaped, and the bytes of
    /// strings, including the opening quote but not the closing one.
    #[inline(always)]
    pub(super) fn block(
        &mut self,
        classes: &Classes,
        prefix_xor: impl Fn(u64) -> u64,
    ) -> (u64, u64) {
        let quotes = classes.quotes & !self.escaped(classes.backslashes);
        let in_string = prefix_xor(quotes) ^ self.is_open;
        self.is_open = 0_u64.wrapping_sub(in_string >> 63);
        self.outside |= classes.backslashes & !in_string;
        (quotes, in_string)
    }

    /// Returns which bytes are escaped: those after an odd number of backslashes.
    #[inline(always)]
    fn escaped(&mut self, backslashes: u64) -> u64 {
        const ODD: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        if backslashes == 0 {
            return core::mem::take(&mut self.is_escaped);
        }
        self.backslashes |= backslashes;
        let possible = backslashes & !self.is_escaped;
        // A borrow runs through each sequence of backslashes. The length of the sequence determines
        // whether it ends at an odd or an even bit.
        let codes = ((possible << 1 | ODD).wrapping_sub(possible)) ^ ODD;
        let escaped = codes ^ (backslashes | self.is_escaped);
        self.is_escaped = (codes & backslashes) >> 63;
        escaped
    }
}

/// Returns, for each bit, the XOR of that bit and all lower bits.
#[inline(always)]
pub(super) fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

/// Returns what [`prefix_xor`] returns: the product with ones, which is added up without carry.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "pclmulqdq")]
#[inline]
pub(super) fn prefix_xor_pclmul(bits: u64) -> u64 {
    use core::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_set1_epi8,
    };

    let bits = _mm_cvtsi64_si128(bits.cast_signed());
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(bits, _mm_set1_epi8(-1))).cast_unsigned()
}
