//! What the bytes of a block can mean in JSON, as bit masks.

/// How many bytes one mask speaks of.
pub(super) const BLOCK_LEN: usize = 64;

/// Masks whose bit `i` speaks of byte `i` of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Classes {
    pub(super) backslashes: u64,
    /// Spaces, tabs, line feeds and carriage returns.
    pub(super) blanks: u64,
    /// Closing brackets.
    pub(super) closes: u64,
    pub(super) colons: u64,
    pub(super) commas: u64,
    /// Bytes below 0x20.
    pub(super) controls: u64,
    pub(super) digits: u64,
    /// Bytes above 0x7F.
    pub(super) high: u64,
    /// Opening brackets.
    pub(super) opens: u64,
    pub(super) quotes: u64,
    /// The digit 0.
    pub(super) zeros: u64,
}

/// Tells the bytes of a block apart.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn classify_baseline(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_sub_epi8,
    };

    let mut classes = Classes::default();
    let (lanes, _) = block.as_chunks::<16>();
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: SSE2 belongs to x86-64 itself, and `lane` is 16 bytes, which need no alignment.
        unsafe {
            let lane = _mm_loadu_si128(lane.as_ptr().cast::<__m128i>());
            let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
            let is = |byte: u8| _mm_cmpeq_epi8(lane, all(byte));
            let mask = |found| u64::from(_mm_movemask_epi8(found) as u16) << (16 * i);
            // "[" and "]" are "{" and "}" without this bit.
            let folded = _mm_or_si128(lane, all(0x20));
            let bracket = |byte: u8| mask(_mm_cmpeq_epi8(folded, all(byte)));
            classes.backslashes |= mask(is(b'\\'));
            let ends = _mm_or_si128(is(b'\n'), is(b'\r'));
            let gaps = _mm_or_si128(is(b' '), is(b'\t'));
            classes.blanks |= mask(_mm_or_si128(ends, gaps));
            classes.controls |= mask(_mm_cmpeq_epi8(_mm_min_epu8(lane, all(0x1f)), lane));
            let value = _mm_sub_epi8(lane, all(b'0'));
            classes.digits |= mask(_mm_cmpeq_epi8(_mm_min_epu8(value, all(9)), value));
            classes.high |= mask(lane);
            classes.opens |= bracket(b'{');
            classes.closes |= bracket(b'}');
            classes.colons |= mask(is(b':'));
            classes.commas |= mask(is(b','));
            classes.quotes |= mask(is(b'"'));
            classes.zeros |= mask(is(b'0'));
        }
    }
    classes
}

/// Tells the bytes of a block apart.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(super) fn classify_baseline(block: &[u8; BLOCK_LEN]) -> Classes {
    classify_portable(block)
}

/// Looked up by the lowest four bits of a byte: the blank that it could be. A space ends in zeros,
/// so that it is no byte's but its own.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
const BLANKS: [u8; 16] = *b"         \t\n  \r  ";

/// Returns what [`classify_baseline`] returns, 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn classify_avx2(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m128i, __m256i, _mm_loadu_si128, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256,
        _mm256_set1_epi8, _mm256_shuffle_epi8, _mm256_sub_epi8,
    };

    // SAFETY: 16 bytes, which need no alignment.
    let blanks = unsafe { _mm_loadu_si128(BLANKS.as_ptr().cast::<__m128i>()) };
    let blanks = _mm256_broadcastsi128_si256(blanks);
    let all = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
    let mut classes = Classes::default();
    let (lanes, _) = block.as_chunks::<32>();
    for (i, lane) in lanes.iter().enumerate() {
        // SAFETY: `lane` is 32 bytes, which need no alignment.
        let lane = unsafe { _mm256_loadu_si256(lane.as_ptr().cast::<__m256i>()) };
        let mask = |found| u64::from(_mm256_movemask_epi8(found).cast_unsigned()) << (32 * i);
        let is = |one, other| mask(_mm256_cmpeq_epi8(one, other));
        // "[" and "]" are "{" and "}" without this bit.
        let folded = _mm256_or_si256(lane, all(0x20));
        classes.backslashes |= is(lane, all(b'\\'));
        classes.blanks |= is(lane, _mm256_shuffle_epi8(blanks, lane));
        classes.closes |= is(folded, all(b'}'));
        classes.colons |= is(lane, all(b':'));
        classes.commas |= is(lane, all(b','));
        classes.controls |= is(lane, _mm256_min_epu8(lane, all(0x1f)));
        let value = _mm256_sub_epi8(lane, all(b'0'));
        classes.digits |= is(value, _mm256_min_epu8(value, all(9)));
        classes.high |= mask(lane);
        classes.opens |= is(folded, all(b'{'));
        classes.quotes |= is(lane, all(b'"'));
        classes.zeros |= is(lane, all(b'0'));
    }
    classes
}

/// Returns what [`classify_baseline`] returns, all bytes at once.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512bw")]
#[inline]
pub(super) fn classify_avx512(block: &[u8; BLOCK_LEN]) -> Classes {
    use core::arch::x86_64::{
        __m128i, __m512i, _mm_loadu_si128, _mm512_broadcast_i32x4, _mm512_cmpeq_epi8_mask,
        _mm512_cmple_epu8_mask, _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_movepi8_mask,
        _mm512_or_si512, _mm512_set1_epi8, _mm512_shuffle_epi8, _mm512_sub_epi8,
    };

    // SAFETY: 16 bytes, which need no alignment.
    let blanks = unsafe { _mm_loadu_si128(BLANKS.as_ptr().cast::<__m128i>()) };
    let blanks = _mm512_broadcast_i32x4(blanks);
    let all = |byte: u8| _mm512_set1_epi8(byte.cast_signed());
    // SAFETY: `block` is 64 bytes, which need no alignment.
    let lane = unsafe { _mm512_loadu_si512(block.as_ptr().cast::<__m512i>()) };
    let is = |byte| _mm512_cmpeq_epi8_mask(lane, all(byte));
    // "[" and "]" are "{" and "}" without this bit.
    let folded = _mm512_or_si512(lane, all(0x20));
    let bracket = |byte| _mm512_cmpeq_epi8_mask(folded, all(byte));
    Classes {
        backslashes: is(b'\\'),
        blanks: _mm512_cmpeq_epi8_mask(lane, _mm512_shuffle_epi8(blanks, lane)),
        closes: bracket(b'}'),
        colons: is(b':'),
        commas: is(b','),
        controls: _mm512_cmplt_epu8_mask(lane, all(0x20)),
        digits: _mm512_cmple_epu8_mask(_mm512_sub_epi8(lane, all(b'0')), all(9)),
        high: _mm512_movepi8_mask(lane),
        opens: bracket(b'{'),
        quotes: is(b'"'),
        zeros: is(b'0'),
    }
}

/// Returns what [`classify_baseline`] returns, byte by byte.
#[cfg(any(not(target_arch = "x86_64"), test))]
pub(super) fn classify_portable(block: &[u8; BLOCK_LEN]) -> Classes {
    let mask = |is: fn(u8) -> bool| {
        let bits = block.iter().enumerate();
        bits.fold(0, |mask, (i, byte)| mask | u64::from(is(*byte)) << i)
    };
    Classes {
        backslashes: mask(|byte| byte == b'\\'),
        blanks: mask(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')),
        closes: mask(|byte| matches!(byte, b']' | b'}')),
        colons: mask(|byte| byte == b':'),
        commas: mask(|byte| byte == b','),
        controls: mask(|byte| byte < 0x20),
        digits: mask(|byte| byte.is_ascii_digit()),
        high: mask(|byte| byte > 0x7f),
        opens: mask(|byte| matches!(byte, b'[' | b'{')),
        quotes: mask(|byte| byte == b'"'),
        zeros: mask(|byte| byte == b'0'),
    }
}
