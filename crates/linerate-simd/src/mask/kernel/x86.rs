//! The masking kernels that not every x86-64 processor supports. The first use selects one.
//!
//! The reason for two kernels, in ns on a Sapphire Rapids Xeon (benchmark `kernels`, in place):
//!
//! | bytes | portable | AVX2 | AVX-512 |
//! | ----: | -------: | ---: | ------: |
//! |   125 |      6.1 |  5.7 |     5.1 |
//! |   512 |     11.6 |  8.4 |     7.2 |
//! |  1024 |     17.7 | 12.0 |     9.4 |
//! | 16384 |      176 |  127 |     100 |
//!
//! At 65,536 bytes the second-level cache is the bottleneck, and all kernels take about 1,150 ns.

use core::arch::x86_64::{__m256i, __m512i};
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::{Key, mask_blocks, mask_portable};

/// The type of the kernels, with the same contract as [`mask_long`].
type Kernel = unsafe fn(Key, *const u8, *mut u8, usize) -> bool;

/// The kernel in use. INVARIANT: holds a [`Kernel`] that this processor can run.
static KERNEL: AtomicPtr<()> = AtomicPtr::new(detect_and_mask as *mut ());

/// Masks a payload longer than [`INLINE_MAX`](super::INLINE_MAX) with the best kernel for this
/// processor.
///
/// # Safety
///
/// Same as for [`mask_raw`](super::mask_raw); `len` must be more than
/// [`INLINE_MAX`](super::INLINE_MAX).
#[inline]
pub(in crate::mask) unsafe fn mask_long(
    key: Key,
    src: *const u8,
    dst: *mut u8,
    len: usize,
) -> bool {
    // SAFETY: only kernels are ever stored (see INVARIANT), and the caller upholds their contract.
    unsafe {
        let kernel = transmute::<*mut (), Kernel>(KERNEL.load(Ordering::Relaxed));
        kernel(key, src, dst, len)
    }
}

/// Selects the kernel for this processor, then masks with it. Only the first call gets here.
///
/// # Safety
///
/// Same as for [`mask_long`].
unsafe fn detect_and_mask(key: Key, src: *const u8, dst: *mut u8, len: usize) -> bool {
    let kernel = detect();
    KERNEL.store(kernel as *mut (), Ordering::Relaxed);
    // SAFETY: the caller upholds the kernel's contract.
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
/// Same as for [`mask_long`]; the processor must support AVX2.
#[target_feature(enable = "avx2")]
pub(in crate::mask) unsafe fn mask_avx2(
    key: Key,
    src: *const u8,
    dst: *mut u8,
    len: usize,
) -> bool {
    // SAFETY: passed on; `len` is more than a block.
    unsafe { mask_blocks::<__m256i>(key, src, dst, len) }
}

/// Masks 64 bytes at a time.
///
/// # Safety
///
/// Same as for [`mask_long`]; the processor must support AVX-512F.
#[target_feature(enable = "avx512f")]
pub(in crate::mask) unsafe fn mask_avx512(
    key: Key,
    src: *const u8,
    dst: *mut u8,
    len: usize,
) -> bool {
    // SAFETY: passed on; `len` is more than a block.
    unsafe { mask_blocks::<__m512i>(key, src, dst, len) }
}
