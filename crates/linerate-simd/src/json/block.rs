//! Classifies the bytes of a block of JSON, as bit masks.

use crate::block::BLOCK_LEN;

/// Masks whose bit `i` stands for byte `i` of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Classes {
    pub(super) backslashes: u64,
    pub(super) brackets: u64,
    pub(super) colons: u64,
    pub(super) commas: u64,
    pub(super) quotes: u64,
}

impl Classes {
    /// Returns the masks without the first `count` bytes of the block.
    #[inline(always)]
    pub(super) fn without(self, count: usize) -> Self {
        Self {
            backslashes: self.backslashes >> count,
            brackets: self.brackets >> count,
            colons: self.colons >> count,
            commas: self.commas >> count,
            quotes: self.quotes >> count,
        }
    }
}

/// Classifies the bytes of a block.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn classify_baseline(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };

    let mut classes = Classes::default();
    let (lanes, _) = block.as_chunks::<16>();
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: SSE2 is part of x86-64, and `lane` has 16 bytes, which need no alignment.
        unsafe {
            let lane = _mm_loadu_si128(lane.as_ptr().cast::<__m128i>());
            let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
            let is = |byte: u8| _mm_cmpeq_epi8(lane, all(byte));
            let mask = |found| u64::from(_mm_movemask_epi8(found) as u16) << (16 * i);
            // "[" and "]" are "{" and "}" without this bit.
            let folded = _mm_or_si128(lane, all(0x20));
            let bracket = |byte: u8| _mm_cmpeq_epi8(folded, all(byte));
            classes.backslashes |= mask(is(b'\\'));
            classes.brackets |= mask(_mm_or_si128(bracket(b'{'), bracket(b'}')));
            classes.colons |= mask(is(b':'));
            classes.commas |= mask(is(b','));
            classes.quotes |= mask(is(b'"'));
        }
    }
    classes
}

/// Classifies the bytes of a block.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(super) fn classify_baseline(block: &[u8; BLOCK_LEN]) -> Classes {
    use crate::block::neon::{is, lanes, mask, or, with_bits};

    let lanes = lanes(block);
    let all = |byte: u8| mask(lanes.map(|lane| is(lane, byte)));
    // "[" and "]" are "{" and "}" without this bit.
    let folded = lanes.map(|lane| with_bits(lane, 0x20));
    Classes {
        backslashes: all(b'\\'),
        brackets: mask(folded.map(|lane| or(is(lane, b'{'), is(lane, b'}')))),
        colons: all(b':'),
        commas: all(b','),
        quotes: all(b'"'),
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use classify_portable as classify_baseline;

/// Returns the same as [`classify_baseline`], with AVX2: 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn classify_avx2(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8,
    };

    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let mut classes = Classes::default();
    let (lanes, _) = block.as_chunks::<32>();
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: `lane` has 32 bytes, which need no alignment.
        let lane = unsafe { _mm256_loadu_si256(lane.as_ptr().cast::<__m256i>()) };
        let mask = |found| u64::from(_mm256_movemask_epi8(found).cast_unsigned()) << (32 * i);
        let is = |byte| _mm256_cmpeq_epi8(lane, all(byte));
        // "[" and "]" are "{" and "}" without this bit.
        let folded = _mm256_or_si256(lane, all(0x20));
        let bracket = |byte| _mm256_cmpeq_epi8(folded, all(byte));
        classes.backslashes |= mask(is(b'\\'));
        classes.brackets |= mask(_mm256_or_si256(bracket(b'{'), bracket(b'}')));
        classes.colons |= mask(is(b':'));
        classes.commas |= mask(is(b','));
        classes.quotes |= mask(is(b'"'));
    }
    classes
}

/// Returns the same as [`classify_baseline`], with AVX-512: all bytes at once.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn classify_avx512(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m512i, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_or_si512, _mm512_set1_epi8,
    };

    let all = |byte: u8| _mm512_set1_epi8(byte.cast_signed());
    // SAFETY: `block` has 64 bytes, which need no alignment.
    let lane = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let is = |byte| _mm512_cmpeq_epi8_mask(lane, all(byte));
    // "[" and "]" are "{" and "}" without this bit.
    let folded = _mm512_or_si512(lane, all(0x20));
    let bracket = |byte| _mm512_cmpeq_epi8_mask(folded, all(byte));
    Classes {
        backslashes: is(b'\\'),
        brackets: bracket(b'{') | bracket(b'}'),
        colons: is(b':'),
        commas: is(b','),
        quotes: is(b'"'),
    }
}

/// Returns the same as [`classify_baseline`], byte by byte.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), test))]
pub(super) fn classify_portable(block: &[u8; BLOCK_LEN]) -> Classes {
    let mask = |is: fn(u8) -> bool| {
        let bits = block.iter().enumerate();
        bits.fold(0, |mask, (i, byte)| mask | u64::from(is(*byte)) << i)
    };
    Classes {
        backslashes: mask(|byte| byte == b'\\'),
        brackets: mask(|byte| matches!(byte, b'[' | b']' | b'{' | b'}')),
        colons: mask(|byte| byte == b':'),
        commas: mask(|byte| byte == b','),
        quotes: mask(|byte| byte == b'"'),
    }
}
