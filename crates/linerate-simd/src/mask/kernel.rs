//! The masking kernels and the choice between them.
//!
//! A payload that follows a header of 2 to 14 bytes is rarely aligned, so nothing here aligns:
//! loads and stores are unaligned, and the last block overlaps the one before it instead of leaving
//! a tail to be finished byte by byte. In place that needs care, since XOR twice is no XOR: the last
//! block is loaded before any other is stored.

use super::block::Block;

/// A masking key, rotated so that its first byte belongs to the first byte of the payload at hand.
#[derive(Clone, Copy)]
pub(super) struct Key(u32);

impl Key {
    /// Creates the key for a payload that starts `phase` bytes into the frame's payload.
    #[inline(always)]
    pub(super) fn new(key: [u8; 4], phase: usize) -> Self {
        Key(u32::from_ne_bytes(key)).at(phase)
    }

    /// Returns the key as it applies `offset` bytes further on.
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

/// Masks `len` bytes from `src` to `dst`: the contract that all kernels share.
///
/// # Safety
///
/// `src` is valid for reading and `dst` for writing `len` bytes. The two ranges are the same or do
/// not overlap. What a kernel says about `len` and about the processor holds.
type Kernel = unsafe fn(Key, *const u8, *mut u8, usize);

/// Payloads up to this length are masked inline; longer ones are worth a call.
const INLINE_MAX: usize = 64;

/// Masks a payload of any length.
///
/// # Safety
///
/// As [`Kernel`] says.
#[inline]
pub(super) unsafe fn mask_raw(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's guarantees are passed on, and each branch picks a kernel made for `len`.
    unsafe {
        match len {
            0 => {}
            1..4 => mask_bytes(key, src, dst, len),
            4..8 => mask_ends::<u32>(key, src, dst, len),
            8..=16 => mask_ends::<u64>(key, src, dst, len),
            17..=32 => mask_ends::<[u64; 2]>(key, src, dst, len),
            33..=INLINE_MAX => mask_ends::<[u64; 4]>(key, src, dst, len),
            _ => mask_long(key, src, dst, len),
        }
    }
}

/// Masks 1 to 3 bytes without a branch.
///
/// # Safety
///
/// As [`Kernel`] says; `len` is 1, 2 or 3.
#[inline(always)]
unsafe fn mask_bytes(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    let key = key.word().to_ne_bytes();
    let (middle, last) = (len / 2, len - 1);
    // SAFETY: 0, `middle` and `last` are below `len`. All are read before any is written, because
    // they coincide in payloads of less than 3 bytes.
    unsafe {
        let (a, b, c) = (src.read(), src.add(middle).read(), src.add(last).read());
        dst.write(a ^ key[0]);
        dst.add(middle).write(b ^ key[middle]);
        dst.add(last).write(c ^ key[last]);
    }
}

/// Masks a payload of one to two blocks: its first block and its last.
///
/// # Safety
///
/// As [`Kernel`] says; `len` lies in `B::LEN..=2 * B::LEN`, and the processor has what `B` needs.
#[inline(always)]
unsafe fn mask_ends<B: Block>(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    let tail_at = len - B::LEN;
    // SAFETY: both blocks lie within `len`, and both are loaded before either is stored.
    unsafe {
        let head = B::load(src).xor(B::splat(key));
        let tail = B::load(src.add(tail_at)).xor(B::splat(key.at(tail_at)));
        head.store(dst);
        tail.store(dst.add(tail_at));
    }
}

/// Masks a payload of at least one block, four blocks at a time as long as there are four.
///
/// # Safety
///
/// As [`Kernel`] says; `len` is at least `B::LEN`, and the processor has what `B` needs.
#[inline(always)]
unsafe fn mask_blocks<B: Block>(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    let tail_at = len - B::LEN;
    // SAFETY: every block lies within `len`. The body's blocks do not overlap one another, and the
    // tail, which may overlap the last of them, is loaded before any is stored.
    unsafe {
        let tail = B::load(src.add(tail_at)).xor(B::splat(key.at(tail_at)));
        let key = B::splat(key);
        let mut at = 0;
        while at + 4 * B::LEN <= len {
            let blocks: [B; 4] = core::array::from_fn(|i| B::load(src.add(at + i * B::LEN)));
            for (i, block) in blocks.into_iter().enumerate() {
                block.xor(key).store(dst.add(at + i * B::LEN));
            }
            at += 4 * B::LEN;
        }
        while at < tail_at {
            B::load(src.add(at)).xor(key).store(dst.add(at));
            at += B::LEN;
        }
        tail.store(dst.add(tail_at));
    }
}

/// Masks in runs of words: the kernel of every processor that has no better one.
///
/// # Safety
///
/// As [`Kernel`] says; `len` is more than [`INLINE_MAX`].
unsafe fn mask_portable(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: passed on; `len` is more than a block, and words need no particular instructions.
    unsafe { mask_blocks::<[u64; 4]>(key, src, dst, len) }
}

/// Masks a payload longer than [`INLINE_MAX`] with the best kernel that this processor has.
///
/// # Safety
///
/// As [`Kernel`] says; `len` is more than [`INLINE_MAX`].
#[cfg(not(all(target_arch = "x86_64", feature = "std")))]
#[inline]
unsafe fn mask_long(key: Key, src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's guarantees are the kernel's.
    unsafe { mask_portable(key, src, dst, len) }
}

#[cfg(all(target_arch = "x86_64", feature = "std"))]
use x86::mask_long;

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod x86 {
    use core::arch::x86_64::{__m256i, __m512i};
    use core::mem::transmute;
    use core::sync::atomic::{AtomicPtr, Ordering};

    use super::{Kernel, Key, mask_blocks, mask_portable};

    /// The kernel in use. INVARIANT: holds a [`Kernel`] that this processor can run.
    static KERNEL: AtomicPtr<()> = AtomicPtr::new(detect_and_mask as *mut ());

    /// Masks a payload longer than [`INLINE_MAX`](super::INLINE_MAX) with the best kernel that this
    /// processor has.
    ///
    /// # Safety
    ///
    /// As [`Kernel`] says; `len` is more than [`INLINE_MAX`](super::INLINE_MAX).
    #[inline]
    pub(super) unsafe fn mask_long(key: Key, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: only kernels are ever stored, see INVARIANT; the caller's guarantees are theirs.
        unsafe {
            let kernel = transmute::<*mut (), Kernel>(KERNEL.load(Ordering::Relaxed));
            kernel(key, src, dst, len);
        }
    }

    /// Chooses the kernel for this processor, then masks with it: what the first call runs into.
    ///
    /// # Safety
    ///
    /// As for [`mask_long`].
    unsafe fn detect_and_mask(key: Key, src: *const u8, dst: *mut u8, len: usize) {
        let kernel = detect();
        KERNEL.store(kernel as *mut (), Ordering::Relaxed);
        // SAFETY: the caller's guarantees are the kernel's.
        unsafe { kernel(key, src, dst, len) }
    }

    fn detect() -> Kernel {
        if std::arch::is_x86_feature_detected!("avx512f") {
            mask_avx512
        } else if std::arch::is_x86_feature_detected!("avx2") {
            mask_avx2
        } else {
            mask_portable
        }
    }

    /// Masks 32 bytes at a time.
    ///
    /// # Safety
    ///
    /// As for [`mask_long`]; the processor has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn mask_avx2(key: Key, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: passed on; `len` is more than a block.
        unsafe { mask_blocks::<__m256i>(key, src, dst, len) }
    }

    /// Masks 64 bytes at a time.
    ///
    /// # Safety
    ///
    /// As for [`mask_long`]; the processor has AVX-512F.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn mask_avx512(key: Key, src: *const u8, dst: *mut u8, len: usize) {
        // SAFETY: passed on; `len` is more than a block.
        unsafe { mask_blocks::<__m512i>(key, src, dst, len) }
    }
}

/// Returns every long kernel that this processor can run, by name.
#[cfg(test)]
pub(super) fn available() -> alloc::vec::Vec<(&'static str, Kernel)> {
    #[allow(unused_mut)]
    let mut kernels: alloc::vec::Vec<(&'static str, Kernel)> = alloc::vec![
        ("dispatched", mask_long as Kernel),
        ("portable", mask_portable)
    ];
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            kernels.push(("avx2", x86::mask_avx2));
        }
        if std::arch::is_x86_feature_detected!("avx512f") {
            kernels.push(("avx512", x86::mask_avx512));
        }
    }
    kernels
}
