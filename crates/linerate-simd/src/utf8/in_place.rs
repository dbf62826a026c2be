//! Payloads that were unmasked in the buffer in which they arrived.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Utf8Error, validate, validate_masked};
use crate::mask;

/// A buffer of input and the payloads in it that were unmasked in place, in order of arrival.
///
/// Text is validated once, when it is pushed: as long as a payload is listed, its bytes cannot
/// change.
///
/// ```
/// use linerate_simd::utf8::{InPlacePayload, InPlacePayloads};
///
/// let mut payloads = InPlacePayloads::default();
/// payloads.start(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x82\x00".to_vec(), 13);
/// payloads.push_text(Some([0x37, 0xfa, 0x21, 0x3d]), 6..11)?;
/// payloads.push_binary(None, 13..13);
///
/// assert_eq!(payloads.get(0), Some(InPlacePayload::Text("Hello")));
/// assert_eq!(payloads.get(1), Some(InPlacePayload::Binary(b"")));
/// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
/// ```
#[derive(Debug, Default)]
pub struct InPlacePayloads {
    bytes: Vec<u8>,
    /// The number of bytes that are input; the content of the others is arbitrary.
    input_bytes: usize,
    /// INVARIANT: spans do not overlap and end at or before `listed`; the bytes of text are UTF-8.
    spans: Vec<Span>,
    /// The end of the last span. Bytes before it never change.
    listed: usize,
}

/// A payload, borrowed from [`InPlacePayloads`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InPlacePayload<'a> {
    /// Arbitrary bytes.
    Binary(&'a [u8]),
    /// UTF-8 text.
    Text(&'a str),
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    /// The length, shifted left by one; the lowest bit is set for text.
    bytes_and_kind: u32,
}

impl InPlacePayloads {
    /// Starts over with the first `input_bytes` of `bytes` as input and no payloads; returns the
    /// previous buffer.
    ///
    /// # Panics
    /// Panics if `bytes` are fewer than `input_bytes`, or 2 GiB or more.
    pub fn start(&mut self, bytes: Vec<u8>, input_bytes: usize) -> Vec<u8> {
        assert!(
            input_bytes <= bytes.len() && bytes.len() < 1 << 31,
            "{input_bytes} of {} bytes cannot be input",
            bytes.len()
        );
        self.spans.clear();
        self.listed = 0;
        self.input_bytes = input_bytes;
        core::mem::replace(&mut self.bytes, bytes)
    }

    /// Unmasks the binary payload at `range` and appends it to the list.
    ///
    /// # Panics
    /// Panics if `range` is not within the input, or begins before the end of an earlier payload.
    #[inline(always)]
    pub fn push_binary(&mut self, key: Option<[u8; 4]>, range: Range<usize>) {
        self.check(&range);
        if let Some(key) = key {
            mask::apply(key, 0, &mut self.bytes[range.clone()]);
        }
        self.list(&range, 0);
    }

    /// Unmasks the text at `range`, validates it, and appends it to the list.
    ///
    /// # Errors
    /// The text is not UTF-8; it is not appended then.
    ///
    /// # Panics
    /// Same as for [`push_binary`](Self::push_binary).
    #[inline(always)]
    pub fn push_text(
        &mut self,
        key: Option<[u8; 4]>,
        range: Range<usize>,
    ) -> Result<(), Utf8Error> {
        self.check(&range);
        match key {
            Some(key) => _ = validate_masked(key, &mut self.bytes, range.clone())?,
            None => _ = validate(&self.bytes[range.clone()])?,
        }
        self.list(&range, 1);
        Ok(())
    }

    /// Returns the payload at `index` in the list.
    #[inline]
    pub fn get(&self, index: usize) -> Option<InPlacePayload<'_>> {
        let Span {
            start,
            bytes_and_kind,
        } = *self.spans.get(index)?;
        let start = start as usize;
        let bytes = self
            .bytes
            .get(start..start + (bytes_and_kind >> 1) as usize)?;
        Some(if bytes_and_kind & 1 == 0 {
            InPlacePayload::Binary(bytes)
        } else {
            // SAFETY: `push_text` has found these bytes to be UTF-8, and nothing before `listed`
            // has changed since.
            InPlacePayload::Text(unsafe { core::str::from_utf8_unchecked(bytes) })
        })
    }

    /// Returns the number of payloads.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns whether there are no payloads.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns for how many payloads there is room without another allocation.
    pub fn capacity(&self) -> usize {
        self.spans.capacity()
    }

    /// Returns the input.
    #[inline]
    pub fn input(&self) -> &[u8] {
        &self.bytes[..self.input_bytes]
    }

    /// Returns the input from `at` on, for a caller that processes it in another way.
    ///
    /// # Panics
    /// Panics if `at` is not within the input, or before the end of the last payload.
    #[inline]
    pub fn rest_mut(&mut self, at: usize) -> &mut [u8] {
        assert!(at >= self.listed, "{at} is within a payload");
        &mut self.bytes[at..self.input_bytes]
    }

    #[inline]
    fn check(&self, range: &Range<usize>) {
        assert!(
            self.listed <= range.start && range.start <= range.end && range.end <= self.input_bytes,
            "a payload must follow the earlier ones and lie within the input"
        );
    }

    #[inline]
    fn list(&mut self, range: &Range<usize>, kind: u32) {
        self.listed = range.end;
        self.spans.push(Span {
            start: range.start as u32,
            bytes_and_kind: (range.len() as u32) << 1 | kind,
        });
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn payloads_come_back_as_they_were_pushed() {
        let key = [1, 2, 3, 4];
        let mut bytes = "\x01ab".as_bytes().to_vec();
        let text = "Grüße".as_bytes();
        bytes.extend(text.iter().zip(key.iter().cycle()).map(|(b, k)| b ^ k));
        bytes.extend([0xFF; 9]);
        let end = 3 + text.len();
        let mut payloads = InPlacePayloads::default();
        payloads.start(bytes, end);
        payloads.push_binary(None, 0..3);
        payloads.push_text(Some(key), 3..end).unwrap();
        payloads.push_text(None, end..end).unwrap();
        assert_eq!(payloads.len(), 3);
        assert_eq!(payloads.get(0), Some(InPlacePayload::Binary(b"\x01ab")));
        assert_eq!(payloads.get(1), Some(InPlacePayload::Text("Grüße")));
        assert_eq!(payloads.get(2), Some(InPlacePayload::Text("")));
        assert_eq!(payloads.get(3), None);
        assert!(payloads.rest_mut(end).is_empty());
        let before = payloads.start(vec![7; 4], 2);
        assert_eq!(before.len(), end + 9);
        assert!(payloads.is_empty() && payloads.input() == [7, 7]);
    }

    #[test]
    fn invalid_text_is_not_listed() {
        for key in [None, Some([0; 4])] {
            let mut payloads = InPlacePayloads::default();
            payloads.start(b"ab\xFFc".to_vec(), 4);
            let error = payloads.push_text(key, 0..4).unwrap_err();
            assert_eq!((error.valid_up_to(), payloads.len()), (2, 0));
        }
    }

    #[test]
    #[should_panic(expected = "must follow the earlier ones")]
    fn a_payload_is_never_unmasked_twice() {
        let mut payloads = InPlacePayloads::default();
        payloads.start(vec![0; 8], 8);
        payloads.push_binary(Some([1; 4]), 0..4);
        payloads.push_binary(Some([1; 4]), 3..8);
    }

    #[test]
    #[should_panic(expected = "within the input")]
    fn a_payload_ends_within_the_input() {
        let mut payloads = InPlacePayloads::default();
        payloads.start(vec![0; 8], 4);
        payloads.push_binary(None, 0..5);
    }

    #[test]
    #[should_panic(expected = "within a payload")]
    fn what_is_listed_is_not_lent_for_writing() {
        let mut payloads = InPlacePayloads::default();
        payloads.start(vec![0; 8], 8);
        payloads.push_binary(None, 2..5);
        payloads.rest_mut(4);
    }
}
