//! Text that is known to be UTF-8 because it was validated as it grew.

use alloc::string::String;
use alloc::vec::Vec;
use core::{fmt, ops, str};

use super::{Utf8Error, Validator};
use crate::mask;

/// Text that grows in pieces and is valid UTF-8, except that its last code point may be incomplete.
///
/// Each byte is validated once, when it is added; reading the text costs nothing. An invalid piece
/// is kept only up to its first invalid byte, and the buffer accepts nothing after it.
///
/// ```
/// use linerate_simd::utf8::TextBuf;
///
/// let mut text = TextBuf::new();
/// text.push(b"3 \xe2\x82")?;
/// assert_eq!(text.as_str(), None);
/// text.push(b"\xac")?;
/// assert_eq!(text.as_str(), Some("3 €"));
/// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
/// ```
#[derive(Debug, Default)]
pub struct TextBuf {
    /// INVARIANT: valid UTF-8, except that the last code point may be incomplete.
    pub(super) bytes: Vec<u8>,
    /// INVARIANT: has accepted `bytes` and all bytes that were taken out before, or has failed. So
    /// if it is complete, all of `bytes` are valid UTF-8.
    validator: Validator,
}

impl TextBuf {
    /// Creates an empty buffer without allocating.
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            validator: Validator::new(),
        }
    }

    /// Creates an empty buffer that uses the memory of `bytes` and discards their content.
    pub fn from_recycled(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self {
            bytes,
            validator: Validator::new(),
        }
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    ///
    /// Returns the offset in `bytes` of the first byte that cannot continue valid UTF-8. The bytes
    /// before it have been appended.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Utf8Error> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.validate_from(start)
    }

    /// Appends the bytes of `src`, unmasked with `key` (RFC 6455 §5.3).
    ///
    /// `phase` is the index of `src[0]` in the frame's payload.
    ///
    /// # Errors
    ///
    /// Returns the offset in `src` of the first byte that, unmasked, cannot continue valid UTF-8.
    /// The bytes before it have been appended.
    #[inline]
    pub fn push_masked(&mut self, key: [u8; 4], phase: usize, src: &[u8]) -> Result<(), Utf8Error> {
        let start = self.bytes.len();
        let is_ascii = mask::append_seeing_ascii(key, phase, src, &mut self.bytes);
        // ASCII is valid unless it interrupts a code point.
        if is_ascii && self.is_complete() {
            return Ok(());
        }
        self.validate_from(start)
    }

    /// Reserves memory for at least `additional` more bytes.
    pub fn reserve(&mut self, additional: usize) {
        self.bytes.reserve(additional);
    }

    /// Moves the text into `memory`, whose old content is discarded, and returns the memory that
    /// was used before.
    ///
    /// This is for callers that recycle memory, where [`reserve`](Self::reserve) would allocate.
    ///
    /// ```
    /// use linerate_simd::utf8::TextBuf;
    ///
    /// let mut text = TextBuf::new();
    /// text.push(b"3 \xe2\x82")?;
    /// text.move_into(Vec::with_capacity(100));
    /// text.push(b"\xac")?;
    /// assert_eq!(text.take_finished(Vec::new()).as_str(), "3 \u{20ac}");
    /// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
    /// ```
    pub fn move_into(&mut self, mut memory: Vec<u8>) -> Vec<u8> {
        memory.clear();
        memory.extend_from_slice(&self.bytes);
        core::mem::replace(&mut self.bytes, memory)
    }

    /// Returns whether the text is valid and ends at the end of a code point.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.validator.is_complete()
    }

    /// Returns the text, or `None` if its last code point is incomplete or after an error.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        // SAFETY: a validator that is complete has accepted all of `bytes`, see INVARIANT.
        self.is_complete()
            .then(|| unsafe { str::from_utf8_unchecked(&self.bytes) })
    }

    /// Returns the bytes of the text, including those of an incomplete last code point.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns how many bytes fit into the allocated memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the bytes and their memory.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the finished text.
    ///
    /// # Errors
    ///
    /// Returns the buffer unchanged if the last code point is incomplete or after an error.
    #[inline]
    pub fn finish(self) -> Result<Text, Self> {
        if !self.is_complete() {
            return Err(self);
        }
        // SAFETY: a validator that is complete has accepted all of `bytes`, see INVARIANT.
        Ok(Text(unsafe { String::from_utf8_unchecked(self.bytes) }))
    }

    /// Takes out all complete code points. The remaining bytes, at most 3, are moved into the
    /// memory of `recycled`, whose old content is discarded, and the text can continue there.
    ///
    /// ```
    /// use linerate_simd::utf8::TextBuf;
    ///
    /// let mut text = TextBuf::new();
    /// text.push(b"3 \xe2\x82")?;
    /// assert_eq!(text.take_finished(Vec::new()).as_str(), "3 ");
    /// text.push(b"\xac")?;
    /// assert_eq!(text.take_finished(Vec::new()).as_str(), "\u{20ac}");
    /// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
    /// ```
    pub fn take_finished(&mut self, mut recycled: Vec<u8>) -> Text {
        let finished = if self.is_complete() {
            self.bytes.len()
        } else {
            // The last code point starts at the last byte that is not a continuation byte.
            let continues = |byte: &u8| byte & 0xC0 == 0x80;
            self.bytes
                .iter()
                .rposition(|byte| !continues(byte))
                .unwrap_or(0)
        };
        recycled.clear();
        recycled.extend_from_slice(&self.bytes[finished..]);
        self.bytes.truncate(finished);
        let text = core::mem::replace(&mut self.bytes, recycled);
        // SAFETY: `bytes` were valid except for an incomplete last code point (see INVARIANT),
        // which was cut off unless the validator is complete.
        Text(unsafe { String::from_utf8_unchecked(text) })
    }

    /// Validates the bytes from `start` on, and removes them from the first invalid one on.
    #[inline]
    pub(super) fn validate_from(&mut self, start: usize) -> Result<(), Utf8Error> {
        self.validator
            .push(&self.bytes[start..])
            .inspect_err(|error| self.bytes.truncate(start + error.valid_up_to()))
    }
}

/// Owned text that is valid UTF-8: the result of a finished [`TextBuf`].
///
/// Unlike a [`String`], it cannot grow; converting between the two costs nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Returns the text.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the bytes and their memory.
    #[inline]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_bytes()
    }

    /// Returns the text as a string that can grow.
    #[inline]
    pub fn into_string(self) -> String {
        self.0
    }
}

impl From<String> for Text {
    fn from(string: String) -> Self {
        Self(string)
    }
}

impl ops::Deref for Text {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
