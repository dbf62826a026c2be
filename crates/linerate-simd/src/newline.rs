//! Finds line feeds, which end the lines in a message.
//!
//! ```
//! use linerate_simd::newline;
//!
//! let lines = b"GET /\nGET /favicon.ico\nGE";
//! assert_eq!(newline::find(lines), Some(5));
//! assert_eq!(newline::rfind(lines), Some(22));
//! assert_eq!(newline::count(lines), 2);
//! assert!(newline::positions(lines).eq([5, 22]));
//! ```

use crate::block::{BLOCK_LEN, find_any};

/// Returns the offset of the first line feed.
#[inline]
pub fn find(haystack: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', haystack)
}

/// Returns the offset of the last line feed.
#[inline]
pub fn rfind(haystack: &[u8]) -> Option<usize> {
    memchr::memrchr(b'\n', haystack)
}

/// Returns how many line feeds there are.
pub fn count(haystack: &[u8]) -> usize {
    // Chunks are short enough for each lane of a vector to count in one byte.
    haystack
        .chunks(192)
        .map(|chunk| {
            usize::from(
                chunk
                    .iter()
                    .map(|&byte| u8::from(byte == b'\n'))
                    .sum::<u8>(),
            )
        })
        .sum()
}

/// Returns the offsets of all line feeds, in ascending order.
#[inline]
pub fn positions(haystack: &[u8]) -> Positions<'_> {
    Positions {
        haystack,
        block_at: 0,
        next_at: 0,
        pending: 0,
    }
}

/// The offsets of all line feeds in a slice; see [`positions`].
///
/// The slice is searched in blocks. The result for a block is a bit mask, so that many short lines
/// cost little more than a few long ones.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    haystack: &'a [u8],
    /// The offset of the block to which `pending` belongs.
    block_at: usize,
    /// The offset of the next block.
    next_at: usize,
    /// One bit for each line feed of the block that has not been returned yet.
    pending: u64,
}

impl Iterator for Positions<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.pending == 0 {
            let rest = &self.haystack[self.next_at..];
            self.block_at = self.next_at;
            self.pending = match rest.first_chunk() {
                Some(block) => find_any(block, [b'\n']),
                None if rest.is_empty() => return None,
                None => {
                    let mut block = [0; BLOCK_LEN];
                    block[..rest.len()].copy_from_slice(rest);
                    find_any(&block, [b'\n'])
                }
            };
            self.next_at += rest.len().min(BLOCK_LEN);
        }
        let offset = self.pending.trailing_zeros() as usize;
        self.pending &= self.pending - 1;
        Some(self.block_at + offset)
    }
}

impl core::iter::FusedIterator for Positions<'_> {}

#[cfg(test)]
mod tests;
