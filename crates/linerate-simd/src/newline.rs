//! Search for line feeds: the ends of the lines within a message.
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

mod block;

use block::{BLOCK_LEN, line_feeds, line_feeds_partial};

/// Returns the offset of the first line feed.
#[inline]
pub fn find(haystack: &[u8]) -> Option<usize> {
    positions(haystack).next()
}

/// Returns the offset of the last line feed.
pub fn rfind(haystack: &[u8]) -> Option<usize> {
    let (head, blocks) = haystack.as_rchunks::<BLOCK_LEN>();
    for (i, block) in blocks.iter().enumerate().rev() {
        if let Some(last) = line_feeds(block).checked_ilog2() {
            return Some(head.len() + i * BLOCK_LEN + last as usize);
        }
    }
    line_feeds_partial(head)
        .checked_ilog2()
        .map(|last| last as usize)
}

/// Returns how many line feeds there are.
pub fn count(haystack: &[u8]) -> usize {
    let (blocks, tail) = haystack.as_chunks::<BLOCK_LEN>();
    let whole: usize = blocks
        .iter()
        .map(|block| line_feeds(block).count_ones() as usize)
        .sum();
    whole + line_feeds_partial(tail).count_ones() as usize
}

/// Returns the offsets of all line feeds, first to last.
#[inline]
pub fn positions(haystack: &[u8]) -> Positions<'_> {
    Positions {
        haystack,
        block_at: 0,
        next_at: 0,
        pending: 0,
    }
}

/// The offsets of all line feeds in a slice: see [`positions`].
///
/// The slice is looked at in blocks; what a block holds is a bit mask, so that many short lines
/// cost little more than a few long ones.
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    haystack: &'a [u8],
    /// Where the block that `pending` speaks of starts.
    block_at: usize,
    /// Where the next block starts.
    next_at: usize,
    /// One bit for each line feed of the block that was not returned yet.
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
                Some(block) => line_feeds(block),
                None if rest.is_empty() => return None,
                None => line_feeds_partial(rest),
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
