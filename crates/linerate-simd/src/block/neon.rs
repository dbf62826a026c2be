//! Masks of the bytes of a block with NEON, which has no instruction for them.
//!
//! Every AArch64 processor that runs an operating system has NEON, so nothing is detected.

use core::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vdupq_n_u8, vld1q_u8, vorrq_u8, vpaddq_u8, vst1q_u8,
};

use super::BLOCK_LEN;

/// 16 bytes; each byte is all ones or zero in the result of a comparison.
pub(crate) type Lane = uint8x16_t;

/// Returns the same as `find_any_portable`.
#[inline(always)]
pub(crate) fn find_any<const N: usize>(block: &[u8; BLOCK_LEN], wanted: [u8; N]) -> u64 {
    mask(lanes(block).map(|lane| {
        let found = wanted.map(|byte| is(lane, byte));
        found.into_iter().fold(is_none(), or)
    }))
}

/// Returns the four lanes of a block.
#[inline(always)]
pub(crate) fn lanes(block: &[u8; BLOCK_LEN]) -> [Lane; 4] {
    let (lanes, _) = block.as_chunks::<16>();
    // SAFETY: each of the four chunks has 16 bytes, which need no alignment; the target has NEON.
    core::array::from_fn(|i| unsafe { vld1q_u8(lanes[i].as_ptr()) })
}

/// Compares each byte of a lane with `byte`.
#[inline(always)]
pub(crate) fn is(lane: Lane, byte: u8) -> Lane {
    // SAFETY: the target has NEON.
    unsafe { vceqq_u8(lane, vdupq_n_u8(byte)) }
}

/// Returns the result of a comparison of which no byte is true.
#[inline(always)]
fn is_none() -> Lane {
    // SAFETY: the target has NEON.
    unsafe { vdupq_n_u8(0) }
}

/// Returns the bits that are set in either lane.
#[inline(always)]
pub(crate) fn or(lane: Lane, other: Lane) -> Lane {
    // SAFETY: the target has NEON.
    unsafe { vorrq_u8(lane, other) }
}

/// Returns `lane` with the bits of `byte` set in each byte.
#[inline(always)]
pub(crate) fn with_bits(lane: Lane, byte: u8) -> Lane {
    // SAFETY: the target has NEON.
    or(lane, unsafe { vdupq_n_u8(byte) })
}

/// Returns a mask whose bit `i` is set if byte `i` of the lanes is all ones, and not if it is zero.
///
/// Each byte keeps the bit of its position in a group of eight. Three pairwise additions then bring
/// the bits of each group together in one byte.
#[inline(always)]
pub(crate) fn mask(found: [Lane; 4]) -> u64 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

    // SAFETY: the target has NEON; `BITS` and `bytes` have the 16 bytes that are loaded and stored.
    unsafe {
        let bits = vld1q_u8(BITS.as_ptr());
        let [a, b, c, d] = found.map(|lane| vandq_u8(lane, bits));
        let pairs = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        let mut bytes = [0; 16];
        vst1q_u8(bytes.as_mut_ptr(), vpaddq_u8(pairs, pairs));
        u128::from_le_bytes(bytes) as u64
    }
}
