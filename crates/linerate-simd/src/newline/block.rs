//! Finds the line feeds in a block of bytes, as a bit mask.

/// The number of bytes in a block: one for each bit of a mask.
pub(super) const BLOCK_LEN: usize = 64;

/// Returns a mask whose bit `i` is set if `block[i]` is a line feed.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn line_feeds(block: &[u8; BLOCK_LEN]) -> u64 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8,
    };

    let (lanes, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: SSE2 is part of x86-64, and `lane` has 16 bytes, which need no alignment.
        let equal = unsafe {
            let lane = _mm_loadu_si128(lane.as_ptr().cast::<__m128i>());
            _mm_movemask_epi8(_mm_cmpeq_epi8(lane, _mm_set1_epi8(b'\n'.cast_signed())))
        };
        mask |= u64::from(equal as u16) << (16 * i);
    }
    mask
}

/// Returns a mask whose bit `i` is set if `block[i]` is a line feed.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn line_feeds(block: &[u8; BLOCK_LEN]) -> u64 {
    line_feeds_portable(block)
}

/// Returns the same as [`line_feeds`], by arithmetic on words.
#[cfg(any(not(target_arch = "x86_64"), test))]
pub(super) fn line_feeds_portable(block: &[u8; BLOCK_LEN]) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const LOW_SEVEN: u64 = u64::from_ne_bytes([0x7f; 8]);
    /// Multiplying by it moves the lowest bit of each byte, in order, into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;

    let (words, _) = block.as_chunks::<8>();
    let mut mask = 0;
    for (i, word) in words.iter().enumerate() {
        let differing = u64::from_le_bytes(*word) ^ (LOW * u64::from(b'\n'));
        // The highest bit of each byte is set if any of its bits differs; no byte carries over.
        let differs = ((differing & LOW_SEVEN) + LOW_SEVEN) | differing;
        let equal = !differs >> 7 & LOW;
        mask |= equal.wrapping_mul(GATHER) >> 56 << (8 * i);
    }
    mask
}

/// Returns a mask whose bit `i` is set if `bytes[i]` is a line feed, for less than a block.
#[inline]
pub(super) fn line_feeds_partial(bytes: &[u8]) -> u64 {
    let mut block = [0; BLOCK_LEN];
    block[..bytes.len()].copy_from_slice(bytes);
    line_feeds(&block)
}
