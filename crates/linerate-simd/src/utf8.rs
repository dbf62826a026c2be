//! UTF-8 validation of text messages, whole and piece by piece (RFC 6455 §8.1, RFC 3629).

mod ascii;
mod in_place;
#[cfg(feature = "bytes")]
mod piece;
mod text;
mod validator;

use core::{fmt, ops::Range};

pub use in_place::{InPlacePayload, InPlacePayloads};
#[cfg(feature = "bytes")]
pub use piece::TextPiece;
pub use text::{Text, TextBuf};
pub use validator::Validator;

use crate::mask;

/// The number of bytes that simdutf8 validates at once. It passes shorter input to the standard
/// library.
const BLOCK_LEN: usize = 64;

/// From this length on, it is faster to pad non-ASCII text to a block: 18 ns instead of 23 ns at 40
/// bytes, and instead of 38 ns at 63 bytes (benchmark `kernels` of linerate-bench).
const PADDED_MIN: usize = 32;

/// Below this length, it is faster to check for ASCII first: 4 ns instead of 10 ns at 125 bytes
/// (benchmark `kernels` of linerate-bench).
const ASCII_LIKELY_MAX: usize = 256;

/// The error for bytes that are not valid UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf8Error {
    valid_up_to: usize,
}

impl Utf8Error {
    /// Returns the offset, in the bytes of the last call, of the first byte that cannot continue
    /// valid UTF-8, or their length if they end inside a code point that had to be complete.
    ///
    /// The offset may be inside a code point, where [`core::str::Utf8Error::valid_up_to`] returns
    /// the start of that code point. For example, 90 cannot follow F4, so this returns 1 for F4 90.
    pub const fn valid_up_to(&self) -> usize {
        self.valid_up_to
    }
}

impl fmt::Display for Utf8Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid UTF-8 at byte {}", self.valid_up_to)
    }
}

impl core::error::Error for Utf8Error {}

/// Returns `bytes` as text if all of them are valid UTF-8.
///
/// # Errors
///
/// Fails if `bytes` are not valid UTF-8, or if the last code point is incomplete.
///
/// ```
/// use linerate_simd::utf8;
///
/// assert_eq!(utf8::validate("κόσμε".as_bytes())?, "κόσμε");
/// assert_eq!(utf8::validate(b"Spam \xf4\x90").unwrap_err().valid_up_to(), 6);
/// # Ok::<(), utf8::Utf8Error>(())
/// ```
#[inline]
pub fn validate(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if !is_valid(bytes) {
        return Err(locate(bytes));
    }
    // SAFETY: the bytes were just found to be valid.
    Ok(unsafe { core::str::from_utf8_unchecked(bytes) })
}

/// XORs a whole payload at `range` of `input` with `key` (RFC 6455 §5.3), validates the result as
/// UTF-8, and returns it as text together with all of `input`.
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
/// use linerate_simd::utf8;
///
/// let mut frame = *b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
/// let (text, _frame) = utf8::validate_masked([0x37, 0xfa, 0x21, 0x3d], &mut frame, 6..11)?;
/// assert_eq!(text, "Hello");
/// # Ok::<(), utf8::Utf8Error>(())
/// ```
#[inline]
pub fn validate_masked(
    key: [u8; 4],
    input: &mut [u8],
    range: Range<usize>,
) -> Result<(&str, &[u8]), Utf8Error> {
    let is_ascii = mask::apply_seeing_ascii(key, 0, &mut input[range.clone()]);
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
    validate(bytes)
}

/// Returns whether all of `bytes` are valid UTF-8.
#[inline]
fn is_valid(bytes: &[u8]) -> bool {
    match bytes.len() {
        ASCII_LIKELY_MAX.. => simdutf8::basic::from_utf8(bytes).is_ok(),
        _ if ascii::is_ascii(bytes) => true,
        PADDED_MIN..BLOCK_LEN => {
            // NUL cannot continue a code point, so the padding does not make invalid bytes valid.
            let mut block = [0; BLOCK_LEN];
            block[..bytes.len()].copy_from_slice(bytes);
            simdutf8::basic::from_utf8(&block).is_ok()
        }
        _ => simdutf8::basic::from_utf8(bytes).is_ok(),
    }
}

/// Finds the first error in `bytes`, which are known to be invalid.
#[cold]
fn locate(bytes: &[u8]) -> Utf8Error {
    match Validator::new().push(bytes) {
        Ok(()) => Utf8Error {
            valid_up_to: bytes.len(),
        },
        Err(error) => error,
    }
}

#[cfg(test)]
mod tests;
