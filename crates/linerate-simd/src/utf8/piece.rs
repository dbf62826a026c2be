//! Text that is read into the memory in which it stays.

use alloc::vec::Vec;
use core::mem;

use bytes::{BufMut, buf::UninitSlice};

use super::{TextBuf, Utf8Error};

/// Bytes that are read into the spare capacity of a [`TextBuf`], where they can be unmasked before
/// they are validated and become part of the text.
///
/// As a [`BufMut`], it takes only as many bytes as the text has capacity for. Bytes that are not
/// added with [`finish`](Self::finish) are discarded.
///
/// ```
/// use bytes::BufMut;
/// use linerate_simd::utf8::TextBuf;
///
/// let mut text = TextBuf::from_recycled(Vec::with_capacity(16));
/// text.push(b"3 ")?;
/// let mut piece = text.piece();
/// piece.put_slice(b"EUR");
/// piece.as_mut_slice().make_ascii_lowercase();
/// piece.finish()?;
/// assert_eq!(text.as_str(), Some("3 eur"));
/// # Ok::<(), linerate_simd::utf8::Utf8Error>(())
/// ```
#[derive(Debug)]
pub struct TextPiece<'t> {
    text: &'t mut TextBuf,
    /// The bytes of the text, and those of the piece from `start` on. They are here, and not in the
    /// text, because a piece can be forgotten without being validated.
    bytes: Vec<u8>,
    start: usize,
}

impl TextBuf {
    /// Starts a piece that is read into the spare capacity.
    pub fn piece(&mut self) -> TextPiece<'_> {
        let bytes = mem::take(&mut self.bytes);
        TextPiece {
            text: self,
            start: bytes.len(),
            bytes,
        }
    }
}

impl TextPiece<'_> {
    /// Returns the bytes that were read so far.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
    }

    /// Adds the piece to the text.
    ///
    /// # Errors
    ///
    /// Returns the offset in the piece of the first byte that cannot continue valid UTF-8. The
    /// bytes before it have been added.
    pub fn finish(mut self) -> Result<(), Utf8Error> {
        self.text.bytes = mem::take(&mut self.bytes);
        self.text.validate_from(self.start)
    }
}

impl Drop for TextPiece<'_> {
    fn drop(&mut self) {
        // After `finish`, there is nothing to return.
        if self.bytes.capacity() > 0 {
            self.bytes.truncate(self.start);
            self.text.bytes = mem::take(&mut self.bytes);
        }
    }
}

// SAFETY: everything is passed on to the `Vec`, but it never grows: `chunk_mut` returns its spare
// capacity, which stays where it is, and `advance_mut` accepts no more than that.
unsafe impl BufMut for TextPiece<'_> {
    #[inline]
    fn remaining_mut(&self) -> usize {
        self.bytes.capacity() - self.bytes.len()
    }

    #[inline]
    unsafe fn advance_mut(&mut self, count: usize) {
        assert!(count <= self.remaining_mut(), "more than there is room for");
        // SAFETY: the caller guarantees that the next `count` bytes are initialized, and they are
        // within the capacity.
        unsafe { self.bytes.set_len(self.bytes.len() + count) }
    }

    #[inline]
    fn chunk_mut(&mut self) -> &mut UninitSlice {
        UninitSlice::uninit(self.bytes.spare_capacity_mut())
    }
}
