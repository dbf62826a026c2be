//! Appends a prefix and a payload in one step.

use alloc::vec::Vec;

/// Payloads up to this length, in bytes, are copied inline; longer ones are worth a call.
const INLINE_MAX: usize = 64;

/// Appends `prefix` and then `payload` to `dst`.
///
/// The capacity is checked and the length is set only once for both, and a short payload is copied
/// without a call: 13 bytes take a third of the time of two calls of [`Vec::extend_from_slice`].
///
/// ```
/// use linerate_simd::append;
///
/// let mut frames = Vec::new();
/// append::prefixed(&mut frames, [0x81, 0x05], b"Hello");
/// assert_eq!(frames, b"\x81\x05Hello");
/// ```
#[inline]
pub fn prefixed<const N: usize>(dst: &mut Vec<u8>, prefix: [u8; N], payload: &[u8]) {
    dst.reserve(N + payload.len());
    let len = dst.len();
    // SAFETY: `reserve` made room for `N + payload.len()` bytes after `len`, which are written
    // before the length is raised to include them; spare capacity of `dst` cannot overlap
    // `payload`.
    unsafe {
        let spare = dst.as_mut_ptr().add(len);
        spare.cast::<[u8; N]>().write(prefix);
        copy(payload.as_ptr(), spare.add(N), payload.len());
        dst.set_len(len + N + payload.len());
    }
}

/// Copies `len` bytes from `src` to `dst`.
///
/// # Safety
///
/// `src` must be valid for reading and `dst` for writing `len` bytes, and the two must not overlap.
#[inline(always)]
unsafe fn copy(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's guarantees are passed on, and each branch is correct for its `len`.
    unsafe {
        // Not a single `match`, which would test the ranges one after the other.
        if len < 8 {
            match len {
                0 => {}
                1..4 => copy_bytes(src, dst, len),
                _ => copy_ends::<4>(src, dst, len),
            }
        } else if len > INLINE_MAX {
            src.copy_to_nonoverlapping(dst, len);
        } else {
            match len {
                ..=16 => copy_ends::<8>(src, dst, len),
                17..=32 => copy_ends::<16>(src, dst, len),
                _ => copy_ends::<32>(src, dst, len),
            }
        }
    }
}

/// Copies 1 to 3 bytes without a branch.
///
/// # Safety
///
/// Same as for [`copy`]; `len` must be 1, 2 or 3.
#[inline(always)]
unsafe fn copy_bytes(src: *const u8, dst: *mut u8, len: usize) {
    let (middle, last) = (len / 2, len - 1);
    // SAFETY: 0, `middle` and `last` are below `len`.
    unsafe {
        dst.write(src.read());
        dst.add(middle).write(src.add(middle).read());
        dst.add(last).write(src.add(last).read());
    }
}

/// Copies one to two blocks of `N` bytes: the first and the last, which may overlap.
///
/// # Safety
///
/// Same as for [`copy`]; `len` must be in `N..=2 * N`.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(src: *const u8, dst: *mut u8, len: usize) {
    let last = len - N;
    // SAFETY: both blocks are within `len`; arrays of bytes need no alignment.
    unsafe {
        let head = src.cast::<[u8; N]>().read();
        let tail = src.add(last).cast::<[u8; N]>().read();
        dst.cast::<[u8; N]>().write(head);
        dst.add(last).cast::<[u8; N]>().write(tail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_two_extensions_at_every_length() {
        let payload: Vec<u8> = (1..=200).collect();
        for len in 0..=payload.len() {
            for capacity in [0, 1, 512] {
                let mut dst = Vec::with_capacity(capacity);
                dst.push(0xa5);
                prefixed(&mut dst, [1, 2, 3, 4], &payload[..len]);
                prefixed(&mut dst, [], &payload[..len]);
                let mut expected = std::vec![0xa5, 1, 2, 3, 4];
                expected.extend_from_slice(&payload[..len]);
                expected.extend_from_slice(&payload[..len]);
                assert_eq!(dst, expected);
            }
        }
    }
}
