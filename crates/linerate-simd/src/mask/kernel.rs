//! The masking kernels and the choice between them.
//!
//! A payload that follows a header of 2 to 14 bytes is rarely aligned, so loads and stores are
//! unaligned. The last block overlaps the one before it, so that no tail has to be processed byte
//! by byte. When masking in place, bytes in the overlap must not be XORed twice, so the last block
//! is loaded before any other block is stored.
//!
//! Every kernel also returns whether its whole output is ASCII. It has the bytes in registers
//! anyway, and most text then needs no second pass for validation.

#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(super) mod x86;

/// The kernel for long payloads; this target has only one.
#[cfg(not(all(target_arch = "x86_64", feature = "std")))]
pub(super) use mask_portable as mask_long;
#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub(super) use x86::mask_long;

use super::block::Block;

/// A masking key, rotated so that its first byte applies to the first byte of the given payload.
#[derive(Clone, Copy)]
pub(super) struct Key(u32);

impl Key {
    /// Creates the key for a payload that starts `phase` bytes into the frame's payload.
    #[inline(always)]
    pub(super) fn new(key: [u8; 4], phase: usize) -> Self {
        Key(u32::from_ne_bytes(key)).at(phase)
    }

    /// Returns the key for the bytes from `offset` on.
    #[inline(always)]
    fn at(self, offset: usize) -> Self {
        let bits = 8 * (offset % 4) as u32;
        Key(u32::from_le(self.0).rotate_right(bits).to_le())
    }

    /// Returns the four bytes as a word in memory order.
    #[inline(always)]
    pub(super) fn word(self) -> u32 {
        self.0
    }
}

/// Payloads up to this length, in bytes, are masked inline; longer ones are worth a call.
pub(super) const INLINE_MAX: usize = 64;

/// Masks `len` bytes from `src` to `dst`; returns whether the result is ASCII.
///
/// # Safety
///
/// `src` must be valid for reading and `dst` for writing `len` bytes. The two ranges must be the
/// same or not overlap.
#[inline(always)]
pub(super) unsafe fn mask_raw(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    // SAFETY: the caller's guarantees are passed on, and each branch selects a kernel for its
    // `len`.
    unsafe {
        // Not a single `match`, which would test the ranges one after the other.
        if len < 8 {
            match len {
                0 => true,
                1..4 => mask_bytes(key, src, dst, len),
                _ => mask_ends::<u32>(key, src, dst, len),
            }
        } else if len > INLINE_MAX {
            mask_long(key, src, dst, len)
        } else {
            match len {
                ..=16 => mask_ends::<u64>(key, src, dst, len),
                17..=32 => mask_ends::<[u64; 2]>(key, src, dst, len),
                _ => mask_ends::<[u64; 4]>(key, src, dst, len),
            }
        }
    }
}

/// Masks 1 to 3 bytes without a branch.
///
/// # Safety
///
/// Same as for [`mask_raw`]; `len` must be 1, 2 or 3.
#[inline(always)]
unsafe fn mask_bytes(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    let key = key.word().to_ne_bytes();
    let (middle, last) = (len / 2, len - 1);
    // SAFETY: 0, `middle` and `last` are below `len`. All are read before any is written, because
    // they coincide in payloads of less than 3 bytes.
    unsafe {
        let (a, b, c) = (src.read(), src.add(middle).read(), src.add(last).read());
        let (a, b, c) = (a ^ key[0], b ^ key[middle], c ^ key[last]);
        dst.write(a);
        dst.add(middle).write(b);
        dst.add(last).write(c);
        (a | b | c).is_ascii()
    }
}

/// Masks a payload of one to two blocks: its first block and its last.
///
/// # Safety
///
/// Same as for [`mask_raw`]; `len` must be in `B::LEN..=2 * B::LEN`, and the processor must support
/// `B`.
#[inline(always)]
unsafe fn mask_ends<B: Block>(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    let tail_at = len - B::LEN;
    // SAFETY: both blocks are within `len`, and both are loaded before either is stored.
    unsafe {
        let head = B::load(src).xor(B::splat(key));
        let tail = B::load(src.add(tail_at)).xor(B::splat(key.at(tail_at)));
        head.store(dst);
        tail.store(dst.add(tail_at));
        head.or(tail).is_ascii()
    }
}

/// Masks a payload of more than one block, four blocks at a time if possible.
///
/// The first and the last block are unaligned. The blocks between them are aligned at the
/// destination, because a vector that straddles two cache lines costs twice as much.
///
/// # Safety
///
/// Same as for [`mask_raw`]; `len` must be more than `B::LEN`, and the processor must support `B`.
#[inline(always)]
unsafe fn mask_blocks<B: Block>(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    let tail_at = len - B::LEN;
    let mut at = B::LEN - dst.addr() % B::LEN;
    // SAFETY: every block is within `len`: `at` is at most `B::LEN`, and a block of the body starts
    // before `tail_at`. The body's blocks do not overlap one another; the head and the tail, which
    // may overlap them, are loaded before any of them is stored.
    unsafe {
        let head = B::load(src).xor(B::splat(key));
        let tail = B::load(src.add(tail_at)).xor(B::splat(key.at(tail_at)));
        let mut all = head.or(tail);
        let key = B::splat(key.at(at));
        while at + 4 * B::LEN <= len {
            let blocks: [B; 4] = core::array::from_fn(|i| B::load(src.add(at + i * B::LEN)));
            for (i, block) in blocks.into_iter().enumerate() {
                let block = block.xor(key);
                block.store(dst.add(at + i * B::LEN));
                all = all.or(block);
            }
            at += 4 * B::LEN;
        }
        while at < tail_at {
            let block = B::load(src.add(at)).xor(key);
            block.store(dst.add(at));
            all = all.or(block);
            at += B::LEN;
        }
        head.store(dst);
        tail.store(dst.add(tail_at));
        all.is_ascii()
    }
}

/// Masks in runs of words: the kernel for processors without a better one.
///
/// # Safety
///
/// Same as for [`mask_raw`]; `len` must be more than [`INLINE_MAX`].
pub(super) unsafe fn mask_portable(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    // SAFETY: passed on; `len` is more than a block, and words need no special instructions.
    unsafe { mask_blocks::<[u64; 4]>(key, src, dst, len) }
}
