//! Finds given bytes in a block, as a bit mask.

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;

/// The number of bytes in a block: one for each bit of a mask.
pub(crate) const BLOCK_LEN: usize = 64;

/// Returns a mask whose bit `i` is set if `block[i]` is one of `wanted`.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn find_any<const N: usize>(block: &[u8; BLOCK_LEN], wanted: [u8; N]) -> u64 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
        _mm_setzero_si128,
    };

    let (lanes, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: SSE2 is part of x86-64, and `lane` has 16 bytes, which need no alignment.
        let found = unsafe {
            let lane = _mm_loadu_si128(lane.as_ptr().cast::<__m128i>());
            let mut found = _mm_setzero_si128();
            for byte in wanted {
                let equal = _mm_cmpeq_epi8(lane, _mm_set1_epi8(byte.cast_signed()));
                found = _mm_or_si128(found, equal);
            }
            _mm_movemask_epi8(found)
        };
        mask |= u64::from(found as u16) << (16 * i);
    }
    mask
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) use find_any_portable as find_any;
#[cfg(target_arch = "aarch64")]
pub(crate) use neon::find_any;

/// Returns the same as [`find_any`], by arithmetic on words.
#[cfg(any(not(any(target_arch = "x86_64", target_arch = "aarch64")), test))]
#[inline]
pub(crate) fn find_any_portable<const N: usize>(block: &[u8; BLOCK_LEN], wanted: [u8; N]) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const LOW_SEVEN: u64 = u64::from_ne_bytes([0x7f; 8]);
    /// Multiplying by it moves the lowest bit of each byte, in order, into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;

    let (words, _) = block.as_chunks::<8>();
    let mut mask = 0;
    for (i, word) in words.iter().enumerate() {
        // The highest bit of each byte is set if the byte differs from all of `wanted`; no byte
        // carries over.
        let mut differs = u64::MAX;
        for byte in wanted {
            let differing = u64::from_le_bytes(*word) ^ (LOW * u64::from(byte));
            differs &= ((differing & LOW_SEVEN) + LOW_SEVEN) | differing;
        }
        let equal = !differs >> 7 & LOW;
        mask |= equal.wrapping_mul(GATHER) >> 56 << (8 * i);
    }
    mask
}
