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
use core::ops::Range;

use crate::utf8::{self, Utf8Error};

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

/// XORs a whole payload at `range` of `input` with `key`, validates the result as UTF-8, and
/// returns it as text together with all of `input`.
///
/// ASCII text is validated in the same pass.
///
/// # Errors
///
/// Returns the offset in the payload of the first byte that is not valid UTF-8; the payload has
/// been XORed in this case as well.
///
/// # Panics
///
/// Panics if `range` is not within `input`.
///
/// ```
/// use linerate_simd::mask;
///
/// let mut frame = *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
/// let (text, _frame) = mask::apply_text([0x37, 0xfa, 0x21, 0x3d], &mut frame, 6..11)?;
/// assert_eq!(text, "Hello");
/// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
/// ```
#[inline]
pub fn apply_text(
    key: [u8; 4],
    input: &mut [u8],
    range: Range<usize>,
) -> Result<(&str, &[u8]), Utf8Error> {
    let is_ascii = apply_seeing_ascii(key, 0, &mut input[range.clone()]);
    let input = &*input;
    let payload = &input[range];
    let text = if is_ascii {
        // SAFETY: ASCII is UTF-8.
        unsafe { core::str::from_utf8_unchecked(payload) }
    } else {
        validate_beyond_ascii(payload)?
    };
    Ok((text, input))
}

/// Validates text that is not ASCII. A separate function, so that ASCII text does not pay for
/// saving the registers that it uses.
#[inline(never)]
fn validate_beyond_ascii(bytes: &[u8]) -> Result<&str, Utf8Error> {
    utf8::validate(bytes)
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
