//! UTF-8 validation of text messages, whole and piece by piece (RFC 6455 §8.1, RFC 3629).

mod ascii;
mod text;
mod validator;

use core::fmt;

pub use text::{Text, TextBuf};
pub use validator::Validator;

/// The length of what simdutf8 validates at once. It leaves what is shorter to the standard library.
const BLOCK_LEN: usize = 64;

/// From this length on, it is quicker to pad text beyond ASCII to a block: 18 ns instead of 23 at 40
/// bytes and of 38 at 63 (`linerate-microbench`).
const PADDED_MIN: usize = 32;

/// Below this length, it pays to look whether all is ASCII first: 4 ns instead of 10 at 125 bytes
/// (`linerate-microbench`).
const ASCII_LIKELY_MAX: usize = 256;

/// Bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utf8Error {
    valid_up_to: usize,
}

impl Utf8Error {
    /// Returns the offset, in the bytes just given, of the first byte that cannot continue valid
    /// UTF-8, or their length if they end within a code point that had to be complete.
    ///
    /// It may lie inside a code point, where [`core::str::Utf8Error::valid_up_to`] would name its
    /// beginning: after the byte F4, 90 cannot follow, so for F4 90 this is 1.
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

/// Returns `bytes` as text if they are valid UTF-8 as a whole.
///
/// # Errors
///
/// Returns an error if they are not, or if the last code point is unfinished.
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
    // SAFETY: they were just found to be valid.
    Ok(unsafe { core::str::from_utf8_unchecked(bytes) })
}

/// Returns whether `bytes` are valid UTF-8 as a whole.
#[inline]
fn is_valid(bytes: &[u8]) -> bool {
    match bytes.len() {
        ASCII_LIKELY_MAX.. => simdutf8::basic::from_utf8(bytes).is_ok(),
        _ if ascii::is_ascii(bytes) => true,
        PADDED_MIN..BLOCK_LEN => {
            // No code point goes on with NUL, so the padding makes nothing valid that is not.
            let mut block = [0; BLOCK_LEN];
            block[..bytes.len()].copy_from_slice(bytes);
            simdutf8::basic::from_utf8(&block).is_ok()
        }
        _ => simdutf8::basic::from_utf8(bytes).is_ok(),
    }
}

/// Finds where `bytes`, which are known not to be valid, go wrong.
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
