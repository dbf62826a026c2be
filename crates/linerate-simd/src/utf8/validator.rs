//! UTF-8 validation that can resume at any split of the bytes (RFC 3629 §4).

use super::{Utf8Error, is_valid};
use crate::mask;

const CONTINUATION_MIN: u8 = 0x80;
const CONTINUATION_MAX: u8 = 0xbf;

/// Up to this length, in bytes, validating byte by byte is faster: a single byte takes about 50
/// instructions instead of 110 (callgrind).
const STEPPED_MAX: usize = 4;

/// Validates UTF-8 that arrives in pieces, split anywhere.
///
/// It fails at the first byte that cannot continue valid UTF-8, even if the code point of that byte
/// is incomplete, so that an endpoint can fail the connection immediately (RFC 6455 §8.1). After a
/// failure, it rejects all further bytes until it is reset.
///
/// ```
/// use linerate_simd::utf8::Validator;
///
/// let mut validator = Validator::new();
/// validator.push(b"\xe2\x82")?;
/// assert!(!validator.is_complete());
/// validator.push(b"\xac")?;
/// assert!(validator.is_complete());
/// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(PartialEq, Eq))]
pub struct Validator {
    /// How many bytes the current code point still needs, 0..=3.
    wanted: u8,
    /// The smallest value that the next of these bytes may have.
    next_min: u8,
    /// The largest value that the next of these bytes may have.
    next_max: u8,
}

impl Validator {
    /// The state after a failure, which rejects every byte.
    const FAILED: Self = Self::wanting(1, 0xff, 0x00);

    /// Creates a validator at the start of a text.
    pub const fn new() -> Self {
        Self::wanting(0, CONTINUATION_MIN, CONTINUATION_MAX)
    }

    /// Validates the next piece, which may begin and end inside a code point.
    ///
    /// # Errors
    ///
    /// Returns the offset in `bytes` of the first byte that cannot continue valid UTF-8.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Utf8Error> {
        let result = if bytes.len() <= STEPPED_MAX {
            self.step_all(bytes, 0)
        } else {
            self.accept(bytes)
        };
        if result.is_err() {
            *self = Self::FAILED;
        }
        result
    }

    /// XORs the next piece in place with `key` (RFC 6455 §5.3), and validates the result.
    ///
    /// `phase` is the index of `bytes[0]` in the frame's payload.
    ///
    /// # Errors
    ///
    /// Returns the offset in `bytes` of the first byte that, unmasked, cannot continue valid UTF-8.
    /// All of `bytes` have been unmasked in this case as well.
    #[inline]
    pub fn push_masked(
        &mut self,
        key: [u8; 4],
        phase: usize,
        bytes: &mut [u8],
    ) -> Result<(), Utf8Error> {
        let is_ascii = mask::apply_seeing_ascii(key, phase, bytes);
        if is_ascii && self.is_complete() {
            return Ok(());
        }
        self.push(bytes)
    }

    /// Resets the validator: the next byte starts a new text.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Returns whether the text so far ends at the end of a code point.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.wanted == 0
    }

    /// Returns the state as a byte, for [`from_state`](Self::from_state): 0 if the text so far is
    /// complete, FF after a failure, else the first byte of a code point that needs the same bytes.
    pub const fn state(&self) -> u8 {
        match (self.wanted, self.next_min, self.next_max) {
            (0, ..) => 0x00,
            (1, CONTINUATION_MIN, _) => 0xc2,
            (2, 0xa0, _) => 0xe0,
            (2, _, 0x9f) => 0xed,
            (2, ..) => 0xe1,
            (3, 0x90, _) => 0xf0,
            (3, _, 0x8f) => 0xf4,
            (3, ..) => 0xf1,
            _ => 0xff,
        }
    }

    /// Returns a validator in the state that [`state`](Self::state) returned, or `None` if it never
    /// returns this byte.
    ///
    /// ```
    /// use linerate_simd::utf8::Validator;
    ///
    /// let mut validator = Validator::new();
    /// validator.push(b"\xe2\x82")?;
    /// let mut continued = Validator::from_state(validator.state()).expect("it is a state");
    /// continued.push(b"\xac")?;
    /// assert!(continued.is_complete());
    /// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
    /// ```
    pub fn from_state(state: u8) -> Option<Self> {
        let validator = Self::after_lead(state).unwrap_or(Self::FAILED);
        (validator.state() == state).then_some(validator)
    }

    fn accept(&mut self, bytes: &[u8]) -> Result<(), Utf8Error> {
        let mut at = 0;
        while self.wanted > 0 && at < bytes.len() {
            self.step(bytes, at)?;
            at += 1;
        }
        let at = at + valid_prefix(&bytes[at..]);
        // The remaining bytes are an incomplete code point, or begin with an invalid one.
        self.step_all(bytes, at)
    }

    /// Validates the bytes from `at` on, one by one.
    #[inline]
    fn step_all(&mut self, bytes: &[u8], at: usize) -> Result<(), Utf8Error> {
        (at..bytes.len()).try_for_each(|at| self.step(bytes, at))
    }

    /// Validates the byte at `at`.
    #[inline]
    fn step(&mut self, bytes: &[u8], at: usize) -> Result<(), Utf8Error> {
        let byte = bytes[at];
        *self = if self.wanted == 0 {
            Self::after_lead(byte).ok_or(Utf8Error { valid_up_to: at })?
        } else if (self.next_min..=self.next_max).contains(&byte) {
            Self::wanting(self.wanted - 1, CONTINUATION_MIN, CONTINUATION_MAX)
        } else {
            return Err(Utf8Error { valid_up_to: at });
        };
        Ok(())
    }

    /// Returns the state after the first byte of a code point (RFC 3629 §4); `None` if no code
    /// point begins with this byte.
    const fn after_lead(lead: u8) -> Option<Self> {
        Some(match lead {
            0x00..=0x7f => Self::new(),
            0xc2..=0xdf => Self::wanting(1, CONTINUATION_MIN, CONTINUATION_MAX),
            // A lower byte would make an overlong form.
            0xe0 => Self::wanting(2, 0xa0, CONTINUATION_MAX),
            // A higher byte would make a surrogate.
            0xed => Self::wanting(2, CONTINUATION_MIN, 0x9f),
            0xe1..=0xef => Self::wanting(2, CONTINUATION_MIN, CONTINUATION_MAX),
            // A lower byte would make an overlong form.
            0xf0 => Self::wanting(3, 0x90, CONTINUATION_MAX),
            0xf1..=0xf3 => Self::wanting(3, CONTINUATION_MIN, CONTINUATION_MAX),
            // A higher byte would exceed U+10FFFF.
            0xf4 => Self::wanting(3, CONTINUATION_MIN, 0x8f),
            _ => return None,
        })
    }

    const fn wanting(wanted: u8, next_min: u8, next_max: u8) -> Self {
        Self {
            wanted,
            next_min,
            next_max,
        }
    }
}

impl Default for Validator {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the length of the prefix of `bytes` that is valid and complete. The code point after it,
/// if any, is incomplete or invalid.
#[inline]
fn valid_prefix(bytes: &[u8]) -> usize {
    let complete = bytes.len() - unfinished_suffix(bytes);
    if is_valid(&bytes[..complete]) {
        return complete;
    }
    match core::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        Err(error) => error.valid_up_to(),
    }
}

/// Returns the length of the incomplete code point at the end, 0..=3 bytes, assuming valid text.
#[inline]
fn unfinished_suffix(bytes: &[u8]) -> usize {
    let is_start = |&byte: &u8| byte & 0xc0 != CONTINUATION_MIN;
    let Some(behind) = bytes.iter().rev().take(3).position(is_start) else {
        return 0;
    };
    let start = bytes.len() - 1 - behind;
    // The first byte of a multi-byte code point begins with as many ones as the code point has
    // bytes.
    if bytes[start].leading_ones() as usize > behind + 1 {
        behind + 1
    } else {
        0
    }
}
