//! The structure of JSON (RFC 8259), by blocks instead of bytes.
//!
//! Tokens are found as in Langdale and Lemire, "Parsing Gigabytes of JSON per Second" (2019). Whether
//! they are in an order that JSON allows is decided for all tokens of a block at once, too: an
//! addition carries a bit from each token to the next one. Only brackets are looked at one by one.
//!
//! [`find_marks`] decides nothing, and takes a third of the time.
//!
//! ```
//! use linerate_simd::json::{Structure, find_marks};
//!
//! let text = br#"{"a": [10, true]}"#;
//! let structure = Structure::of(text).expect("has the structure of JSON");
//! assert_eq!(structure.blocks()[0].odd, 1 << 11);
//! assert!(Structure::of(br#"{"a": [10, true}"#).is_none());
//!
//! let mut marks = Vec::new();
//! find_marks(text, |block| marks.push(block));
//! assert_eq!(marks[0].colons, 1 << 4);
//! assert_eq!(marks[0].brackets, 1 << 0 | 1 << 6 | 1 << 15 | 1 << 16);
//! ```

mod block;
mod grammar;
mod marks;
mod strings;

use alloc::vec::Vec;

use block::{BLOCK_LEN, Classes, classify_baseline};
use grammar::Grammar;
pub use marks::{Marks, find_marks};

/// How deep lists and objects may be nested.
pub const DEPTH_MAX: usize = 127;

/// Where the tokens of 64 bytes are; bit `i` speaks of byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Bytes from which on a scalar is not a whole number without a sign, if it is one at all: the
    /// first of each row of bytes that are no digits, and a leading 0 with something behind it.
    pub odd: u64,
    /// All tokens: brackets, colons, commas, the opening quotes of strings, and where scalars begin.
    /// Those are rows of any other bytes but blanks and quotes: numbers and words, if it is JSON.
    pub tokens: u64,
}

/// The structure of a text, whose strings have no control characters.
///
/// It remains to be checked that the text is UTF-8, that scalars with an [odd](Block::odd) byte are
/// numbers or words, and that the escapes in strings are those of JSON. If there is a backslash
/// outside of strings, it belongs to such a scalar.
#[derive(Clone, Debug)]
pub struct Structure {
    blocks: Vec<Block>,
    has_backslashes: bool,
    has_long_scalars: bool,
    is_ascii: bool,
}

impl Structure {
    /// Looks at a text. `None` if its brackets, commas, colons, strings and scalars are not in an
    /// order that JSON allows, if they are nested deeper than [`DEPTH_MAX`], if a string is not
    /// closed, or if it has a control character.
    #[inline]
    pub fn of(text: &[u8]) -> Option<Self> {
        let mut blocks = Vec::with_capacity(text.len().div_ceil(BLOCK_LEN));
        let grammar = find(text, &mut blocks);
        grammar.is_whole().then_some(Self {
            blocks,
            has_backslashes: grammar.has_backslashes(),
            has_long_scalars: grammar.has_long_scalars(),
            is_ascii: grammar.is_ascii(),
        })
    }

    /// Returns the blocks of the text, of which the last one may be shorter.
    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns whether there is a backslash in the text.
    #[inline]
    pub fn has_backslashes(&self) -> bool {
        self.has_backslashes
    }

    /// Returns whether there is a scalar of 64 bytes or more; there is if there is one of 127.
    #[inline]
    pub fn has_long_scalars(&self) -> bool {
        self.has_long_scalars
    }

    /// Returns whether all of the text is ASCII.
    #[inline]
    pub fn is_ascii(&self) -> bool {
        self.is_ascii
    }
}

/// Finds the blocks of a text, with the best kernel that this processor has.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
fn find(text: &[u8], blocks: &mut Vec<Block>) -> Grammar {
    use std::arch::is_x86_feature_detected;
    let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("lzcnt");
    if has_bits && is_x86_feature_detected!("avx512bw") {
        // SAFETY: the processor was asked for what the function needs.
        unsafe { find_avx512(text, blocks) }
    } else if has_bits && is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        unsafe { find_avx2(text, blocks) }
    } else {
        find_with(text, blocks, classify_baseline)
    }
}

/// Finds the blocks of a text.
#[cfg(not(all(target_arch = "x86_64", feature = "std")))]
fn find(text: &[u8], blocks: &mut Vec<Block>) -> Grammar {
    find_with(text, blocks, classify_baseline)
}

/// Does what [`find_with`] does, 64 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512bw,bmi1,lzcnt")]
fn find_avx512(text: &[u8], blocks: &mut Vec<Block>) -> Grammar {
    // A closure has the features of the function around it.
    find_with(text, blocks, |block| block::classify_avx512(block))
}

/// Does what [`find_with`] does, 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2,bmi1,lzcnt")]
fn find_avx2(text: &[u8], blocks: &mut Vec<Block>) -> Grammar {
    find_with(text, blocks, |block| block::classify_avx2(block))
}

/// Finds the blocks of a text, whose bytes `classify` tells apart.
#[inline(always)]
fn find_with(
    text: &[u8],
    found: &mut Vec<Block>,
    classify: impl Fn(&[u8; BLOCK_LEN]) -> Classes,
) -> Grammar {
    let mut grammar = Grammar::new();
    let (blocks, rest) = text.as_chunks::<BLOCK_LEN>();
    for block in blocks {
        found.push(grammar.block(block, &classify(block)));
    }
    if !rest.is_empty() {
        let block = padded(text, rest.len());
        found.push(grammar.block(&block, &classify(&block)));
    }
    grammar
}

/// Returns the last `len` bytes of a text, followed by blanks.
#[inline(always)]
fn padded(text: &[u8], len: usize) -> [u8; BLOCK_LEN] {
    let mut block = [b' '; BLOCK_LEN];
    block[..len].copy_from_slice(&text[text.len() - len..]);
    block
}

#[cfg(test)]
mod tests;
