//! The blocks in which payloads are masked: the bytes that a kernel loads, XORs and stores at once.

use super::kernel::Key;

/// A run of bytes that fits in registers. Its length is a multiple of the key's.
pub(super) trait Block: Copy {
    /// The length in bytes.
    const LEN: usize = size_of::<Self>();

    /// Returns the key repeated over the whole block.
    ///
    /// # Safety
    ///
    /// The processor must support the instructions for this type of block.
    unsafe fn splat(key: Key) -> Self;

    /// Returns the bytes of `self` XORed with those of `other`.
    ///
    /// # Safety
    ///
    /// The processor must support the instructions for this type of block.
    unsafe fn xor(self, other: Self) -> Self;

    /// Returns the bits that are set in either block.
    ///
    /// # Safety
    ///
    /// The processor must support the instructions for this type of block.
    unsafe fn or(self, other: Self) -> Self;

    /// Returns whether no byte has its highest bit set.
    ///
    /// # Safety
    ///
    /// The processor must support the instructions for this type of block.
    unsafe fn is_ascii(self) -> bool;

    /// Reads a block from `src`, which need not be aligned.
    ///
    /// # Safety
    ///
    /// `src` must be valid for reading [`Self::LEN`] bytes.
    #[inline(always)]
    unsafe fn load(src: *const u8) -> Self {
        // SAFETY: the caller guarantees that the bytes may be read.
        unsafe { src.cast::<Self>().read_unaligned() }
    }

    /// Writes the block to `dst`, which need not be aligned.
    ///
    /// # Safety
    ///
    /// `dst` must be valid for writing [`Self::LEN`] bytes.
    #[inline(always)]
    unsafe fn store(self, dst: *mut u8) {
        // SAFETY: the caller guarantees that the bytes may be written.
        unsafe { dst.cast::<Self>().write_unaligned(self) }
    }
}

impl Block for u32 {
    #[inline(always)]
    unsafe fn splat(key: Key) -> Self {
        key.word()
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    unsafe fn is_ascii(self) -> bool {
        self & 0x8080_8080 == 0
    }
}

impl Block for u64 {
    #[inline(always)]
    unsafe fn splat(key: Key) -> Self {
        u64::from(key.word()) << 32 | u64::from(key.word())
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        self | other
    }

    #[inline(always)]
    unsafe fn is_ascii(self) -> bool {
        self & 0x8080_8080_8080_8080 == 0
    }
}

/// Several words, which the compiler turns into vectors that every processor of the target
/// supports.
impl<const N: usize> Block for [u64; N] {
    #[inline(always)]
    unsafe fn splat(key: Key) -> Self {
        // SAFETY: words need no special instructions.
        [unsafe { u64::splat(key) }; N]
    }

    #[inline(always)]
    unsafe fn xor(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word ^= other;
        }
        self
    }

    #[inline(always)]
    unsafe fn or(mut self, other: Self) -> Self {
        for (word, other) in self.iter_mut().zip(other) {
            *word |= other;
        }
        self
    }

    #[inline(always)]
    unsafe fn is_ascii(self) -> bool {
        let all = self.into_iter().fold(0, |all, word| all | word);
        // SAFETY: words need no special instructions.
        unsafe { all.is_ascii() }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::{
        __m256i, __m512i, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi32,
        _mm256_xor_si256, _mm512_or_si512, _mm512_set1_epi32, _mm512_test_epi32_mask,
        _mm512_xor_si512,
    };

    use super::{Block, Key};

    impl Block for __m256i {
        #[inline(always)]
        unsafe fn splat(key: Key) -> Self {
            // SAFETY: the caller guarantees AVX2.
            unsafe { _mm256_set1_epi32(key.word().cast_signed()) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller guarantees AVX2.
            unsafe { _mm256_xor_si256(self, other) }
        }

        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: the caller guarantees AVX2.
            unsafe { _mm256_or_si256(self, other) }
        }

        #[inline(always)]
        unsafe fn is_ascii(self) -> bool {
            // SAFETY: the caller guarantees AVX2.
            unsafe { _mm256_movemask_epi8(self) == 0 }
        }
    }

    impl Block for __m512i {
        #[inline(always)]
        unsafe fn splat(key: Key) -> Self {
            // SAFETY: the caller guarantees AVX-512F.
            unsafe { _mm512_set1_epi32(key.word().cast_signed()) }
        }

        #[inline(always)]
        unsafe fn xor(self, other: Self) -> Self {
            // SAFETY: the caller guarantees AVX-512F.
            unsafe { _mm512_xor_si512(self, other) }
        }

        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: the caller guarantees AVX-512F.
            unsafe { _mm512_or_si512(self, other) }
        }

        #[inline(always)]
        unsafe fn is_ascii(self) -> bool {
            // SAFETY: the caller guarantees AVX-512F.
            unsafe {
                let high_bits = _mm512_set1_epi32(0x8080_8080_u32.cast_signed());
                _mm512_test_epi32_mask(self, high_bits) == 0
            }
        }
    }
}
