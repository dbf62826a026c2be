//! Finds the marks in a block of bytes, as a bit mask.

/// The number of bytes in a block: one for each bit of a mask.
pub(super) const BLOCK_LEN: usize = 64;

/// Returns a mask whose bit `i` is set if `block[i]` is a mark.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn marks_baseline(block: &[u8; BLOCK_LEN]) -> u64 {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };

    let (lanes, _) = block.as_chunks::<16>();
    let mut mask = 0;
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: SSE2 is part of x86-64, and `lane` has 16 bytes, which need no alignment.
        let found = unsafe {
            let lane = _mm_loadu_si128(lane.as_ptr().cast::<__m128i>());
            let is = |byte: u8| _mm_cmpeq_epi8(lane, _mm_set1_epi8(byte.cast_signed()));
            let found = _mm_or_si128(is(b'\n'), _mm_or_si128(is(b'"'), is(b'\\')));
            _mm_movemask_epi8(found)
        };
        mask |= u64::from(found as u16) << (16 * i);
    }
    mask
}

/// Returns a mask whose bit `i` is set if `block[i]` is a mark.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn marks_baseline(block: &[u8; BLOCK_LEN]) -> u64 {
    marks_portable(block)
}

/// Returns the same as [`marks_baseline`], with AVX2: 32 bytes at a time.
///
/// The lowest four bits of a byte select the only mark that it could be, because these bits are
/// different for all marks.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn marks_avx2(block: &[u8; BLOCK_LEN]) -> u64 {
    use core::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm256_cmpeq_epi8, _mm256_loadu_si256,
        _mm256_movemask_epi8, _mm256_setr_epi8, _mm256_shuffle_epi8,
    };
    /// How far ahead bytes are prefetched: one page, because processors do not prefetch beyond the
    /// end of a page. This makes parsing 7 % faster if another core has received the bytes.
    const AHEAD: usize = 4 << 10;
    /// The entry for bytes whose lowest bits are 0, which must differ from all these bytes. Bytes
    /// above 0x7F always look up 0.
    const NO: i8 = 1;
    const LF: i8 = b'\n'.cast_signed();
    const QUOTE: i8 = b'"'.cast_signed();
    const BACKSLASH: i8 = b'\\'.cast_signed();

    let marks = _mm256_setr_epi8(
        NO, 0, QUOTE, 0, 0, 0, 0, 0, 0, 0, LF, 0, BACKSLASH, 0, 0, 0, //
        NO, 0, QUOTE, 0, 0, 0, 0, 0, 0, 0, LF, 0, BACKSLASH, 0, 0, 0,
    );
    // Prefetching is harmless if there is no memory at this address.
    _mm_prefetch::<_MM_HINT_T0>(block.as_ptr().wrapping_add(AHEAD).cast());
    let (lanes, _) = block.as_chunks::<32>();
    let mut mask = 0;
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: `lane` has 32 bytes, which need no alignment.
        let lane = unsafe { _mm256_loadu_si256(lane.as_ptr().cast::<__m256i>()) };
        let found = _mm256_cmpeq_epi8(lane, _mm256_shuffle_epi8(marks, lane));
        mask |= u64::from(_mm256_movemask_epi8(found).cast_unsigned()) << (32 * i);
    }
    mask
}

/// Returns the same as [`marks_baseline`], by arithmetic on words.
#[cfg(any(not(target_arch = "x86_64"), test))]
pub(super) fn marks_portable(block: &[u8; BLOCK_LEN]) -> u64 {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const LOW_SEVEN: u64 = u64::from_ne_bytes([0x7f; 8]);
    /// Multiplying by it moves the lowest bit of each byte, in order, into the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;

    let (words, _) = block.as_chunks::<8>();
    let mut mask = 0;
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The highest bit of each byte is set if any of its bits differs; no byte carries over.
        let differs = |byte: u8| {
            let differing = word ^ (LOW * u64::from(byte));
            ((differing & LOW_SEVEN) + LOW_SEVEN) | differing
        };
        let equal = !(differs(b'\n') & differs(b'"') & differs(b'\\')) >> 7 & LOW;
        mask |= equal.wrapping_mul(GATHER) >> 56 << (8 * i);
    }
    mask
}
