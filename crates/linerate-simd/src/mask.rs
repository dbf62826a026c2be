//! Masking of client payloads (RFC 6455 §5.3).
//!
//! Masking is its own inverse, so the same functions mask and unmask. `phase` is the offset of the
//! first byte in the frame's payload, so that a payload can be masked in pieces of any length:
//!
//! ```
//! use linerate_simd::mask;
//!
//! let key = [0x37, 0xfa, 0x21, 0x3d];
//! let mut payload = *b"\x7f\x9f\x4d\x51\x58";
//! let (head, tail) = payload.split_at_mut(3);
//! mask::apply(key, 0, head);
//! mask::apply(key, 3, tail);
//! assert_eq!(&payload, b"Hello");
//! ```

use alloc::vec::Vec;

mod block;
mod kernel;
pub mod naive;

use kernel::{Key, mask_raw};

/// XORs `payload` in place with `key`.
///
/// `phase` is the index, in the frame's payload, of `payload[0]`; only its value modulo 4 matters.
#[inline]
pub fn apply(key: [u8; 4], phase: usize, payload: &mut [u8]) {
    apply_seeing_ascii(key, phase, payload);
}

/// XORs like [`apply`], and returns whether the result is ASCII.
#[inline]
pub(crate) fn apply_seeing_ascii(key: [u8; 4], phase: usize, payload: &mut [u8]) -> bool {
    let dst = payload.as_mut_ptr();
    // SAFETY: `payload` is readable and writable for its length, and source and destination are
    // the same range.
    unsafe { mask_raw(Key::new(key, phase), dst.cast_const(), dst, payload.len()) }
}

/// Copies `src`, masked with `key`, into `dst`.
///
/// `phase` is the index, in the frame's payload, of `src[0]`; only its value modulo 4 matters.
///
/// # Panics
///
/// Panics if `src` and `dst` differ in length.
#[inline]
pub fn copy(key: [u8; 4], phase: usize, src: &[u8], dst: &mut [u8]) {
    assert_eq!(
        src.len(),
        dst.len(),
        "source and destination differ in length"
    );
    // SAFETY: both slices have this length, and a shared and a mutable slice cannot overlap.
    unsafe {
        mask_raw(
            Key::new(key, phase),
            src.as_ptr(),
            dst.as_mut_ptr(),
            src.len(),
        )
    };
}

/// Appends `src`, masked with `key`, to `dst` in one pass.
///
/// `phase` is the index, in the frame's payload, of `src[0]`; only its value modulo 4 matters. The
/// new space is written only once, without filling it with zeros first.
#[inline]
pub fn append(key: [u8; 4], phase: usize, src: &[u8], dst: &mut Vec<u8>) {
    append_seeing_ascii(key, phase, src, dst);
}

/// Appends like [`append`], and returns whether the appended bytes are ASCII.
#[inline]
pub(crate) fn append_seeing_ascii(
    key: [u8; 4],
    phase: usize,
    src: &[u8],
    dst: &mut Vec<u8>,
) -> bool {
    dst.reserve(src.len());
    let len = dst.len();
    // SAFETY: `reserve` made room for `src.len()` bytes after `len`, which the kernel writes before
    // the length is raised to include them; spare capacity of `dst` cannot overlap `src`.
    unsafe {
        let spare = dst.as_mut_ptr().add(len);
        let is_ascii = mask_raw(Key::new(key, phase), src.as_ptr(), spare, src.len());
        dst.set_len(len + src.len());
        is_ascii
    }
}

#[cfg(test)]
mod tests;
