//! Finds brackets, colons, commas and strings in JSON (RFC 8259), in blocks instead of bytes.
//!
//! Strings are found as described by Langdale and Lemire in "Parsing Gigabytes of JSON per Second"
//! (2019).
//!
//! ```
//! use linerate_simd::json::find_marks;
//!
//! let mut marks = Vec::new();
//! let outline = find_marks(br#"{"a": [10, true]}"#, &mut marks).expect("its brackets are pairs");
//! assert!(!outline.has_backslashes);
//! assert_eq!(marks[0].colons, 1 << 4);
//! assert_eq!(marks[0].brackets, 1 << 0 | 1 << 6 | 1 << 15 | 1 << 16);
//! assert!(find_marks(br#"{"a": [10, true}"#, &mut marks).is_none());
//! ```

mod block;
mod brackets;
mod strings;

use alloc::vec::Vec;

use block::{Classes, classify_baseline};
use brackets::Brackets;
use strings::{Strings, prefix_xor};

use crate::block::BLOCK_LEN;

/// The maximum nesting depth of arrays and objects.
pub const DEPTH_MAX: usize = 127;

/// The positions of the marks in a block of 64 bytes, as bit masks: bit `i` stands for byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marks {
    /// Brackets outside of strings.
    pub brackets: u64,
    /// Quotes that close strings.
    pub closing: u64,
    /// Colons outside of strings.
    pub colons: u64,
    /// Commas outside of strings.
    pub commas: u64,
    /// Quotes that open strings.
    pub opening: u64,
}

/// Properties of a whole text.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outline {
    /// True if the text contains a backslash.
    pub has_backslashes: bool,
}

/// Replaces the content of `marks` with the marks of each block of a text.
///
/// Returns `None` if the brackets outside of strings are not matching pairs, if they are nested
/// more than [`DEPTH_MAX`] deep, if a string is not closed, or if there is a backslash outside of
/// strings. This does not check anything else; in particular, the text may still be invalid JSON.
#[inline]
pub fn find_marks(text: &[u8], marks: &mut Vec<Marks>) -> Option<Outline> {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    {
        use std::arch::is_x86_feature_detected;
        let has_bits = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("pclmulqdq");
        if has_bits && is_x86_feature_detected!("avx512bw") {
            // SAFETY: the processor has the features that the function needs.
            return unsafe { find_avx512(text, marks) };
        }
        if has_bits && is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { find_avx2(text, marks) };
        }
    }
    find_with(text, marks, classify_baseline, prefix_xor)
}

/// Like [`find_with`], with AVX-512: 64 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512bw,bmi1,pclmulqdq")]
fn find_avx512(text: &[u8], marks: &mut Vec<Marks>) -> Option<Outline> {
    // A closure inherits the target features of the enclosing function.
    find_with(
        text,
        marks,
        |block| block::classify_avx512(block),
        |bits| strings::prefix_xor_pclmul(bits),
    )
}

/// Like [`find_with`], with AVX2: 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2,bmi1,pclmulqdq")]
fn find_avx2(text: &[u8], marks: &mut Vec<Marks>) -> Option<Outline> {
    find_with(
        text,
        marks,
        |block| block::classify_avx2(block),
        |bits| strings::prefix_xor_pclmul(bits),
    )
}

/// Finds the marks of a text. `classify` classifies the bytes of a block; `prefix_xor` must return
/// the same as the function of that name.
#[inline(always)]
fn find_with(
    text: &[u8],
    marks: &mut Vec<Marks>,
    classify: impl Fn(&[u8; BLOCK_LEN]) -> Classes,
    prefix_xor: impl Fn(u64) -> u64,
) -> Option<Outline> {
    let (mut strings, mut brackets) = (Strings::new(), Brackets::new());
    marks.clear();
    marks.reserve(text.len().div_ceil(BLOCK_LEN));
    let (blocks, rest) = text.as_chunks::<BLOCK_LEN>();
    for block in blocks {
        let found = Marks::of(&classify(block), &mut strings, &prefix_xor);
        brackets.block(block, found.brackets);
        marks.push(found);
    }
    if !rest.is_empty() {
        let classes = match text.last_chunk() {
            Some(last) => classify(last).without(BLOCK_LEN - rest.len()),
            None => {
                let mut block = [b' '; BLOCK_LEN];
                block[..rest.len()].copy_from_slice(rest);
                classify(&block)
            }
        };
        let found = Marks::of(&classes, &mut strings, &prefix_xor);
        brackets.block(rest, found.brackets);
        marks.push(found);
    }
    (strings.are_whole() && brackets.are_pairs()).then_some(Outline {
        has_backslashes: strings.have_backslashes(),
    })
}

impl Marks {
    #[inline(always)]
    fn of(classes: &Classes, strings: &mut Strings, prefix_xor: impl Fn(u64) -> u64) -> Self {
        let (quotes, in_string) = strings.block(classes, prefix_xor);
        Self {
            brackets: classes.brackets & !in_string,
            closing: quotes & !in_string,
            colons: classes.colons & !in_string,
            commas: classes.commas & !in_string,
            opening: quotes & in_string,
        }
    }
}

#[cfg(test)]
mod tests;
