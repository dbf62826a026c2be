//! Finds the bytes at which lines of access logs are split: line feeds, double quotes and
//! backslashes.
//!
//! One pass finds all of them, so that the code that splits a line does not have to search.
//!
//! ```
//! use linerate_simd::marks::Finder;
//!
//! let mut finder = Finder::new();
//! assert_eq!(finder.find(b"\"GET /\"\n\\"), [0, 6, 7, 8]);
//! ```

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod avx2;

use alloc::boxed::Box;
use alloc::vec;

use crate::block::{BLOCK_LEN, find_any};

/// The number of bytes that are searched in one pass: few enough that they are still in the
/// first-level cache when they are split.
pub const WINDOW_LEN: usize = 16 << 10;

/// The bytes that are found.
const MARKS: [u8; 3] = *b"\n\"\\";

/// How many offsets are written at once, even if there are fewer.
const WRITTEN: usize = 4;
const ROOM: usize = WINDOW_LEN + WRITTEN;

/// Finds marks, and owns the memory for their offsets: 64 KiB.
#[derive(Clone, Debug)]
pub struct Finder {
    offsets: Box<[u32]>,
}

impl Finder {
    /// Creates a finder.
    pub fn new() -> Self {
        Self {
            offsets: vec![0; ROOM].into_boxed_slice(),
        }
    }

    /// Returns the offsets of all marks in the first [`WINDOW_LEN`] bytes, in ascending order.
    #[inline]
    pub fn find(&mut self, haystack: &[u8]) -> &[u32] {
        let window = &haystack[..haystack.len().min(WINDOW_LEN)];
        let count = find_in(window, &mut self.offsets);
        &self.offsets[..count]
    }

    /// Returns the size of the allocated memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.offsets)
    }
}

impl Default for Finder {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes the offsets of all marks, with the best kernel for this processor; returns their number.
fn find_in(window: &[u8], offsets: &mut [u32]) -> usize {
    #[cfg(all(target_arch = "x86_64", feature = "std"))]
    if std::arch::is_x86_feature_detected!("avx2")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor has the features that the function needs.
        return unsafe { find_avx2(window, offsets) };
    }
    collect(window, offsets, |block| find_any(block, MARKS))
}

/// Like [`collect`], with AVX2: 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2,bmi1,popcnt")]
fn find_avx2(window: &[u8], offsets: &mut [u32]) -> usize {
    // A closure inherits the target features of the enclosing function.
    collect(window, offsets, |block| avx2::marks(block))
}

/// Writes the offsets of all bytes for which `marks` sets a bit; returns their number.
#[inline(always)]
fn collect(window: &[u8], offsets: &mut [u32], marks: impl Fn(&[u8; BLOCK_LEN]) -> u64) -> usize {
    let (blocks, rest) = window.as_chunks::<BLOCK_LEN>();
    let mut count = 0;
    let mut base = 0;
    for block in blocks {
        count += write(marks(block), base, &mut offsets[count..]);
        base += BLOCK_LEN as u32;
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK_LEN];
        block[..rest.len()].copy_from_slice(rest);
        count += write(marks(&block), base, &mut offsets[count..]);
    }
    count
}

/// Writes the positions of the bits of a mask; returns their number.
///
/// Writes [`WRITTEN`] positions at a time without checking how many there are, because a branch
/// that is taken in some blocks and not in others costs more.
#[inline(always)]
fn write(mut mask: u64, base: u32, offsets: &mut [u32]) -> usize {
    let count = mask.count_ones() as usize;
    for slots in offsets.as_chunks_mut::<WRITTEN>().0 {
        for slot in slots {
            *slot = base + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            break;
        }
    }
    count
}

#[cfg(test)]
mod tests;
