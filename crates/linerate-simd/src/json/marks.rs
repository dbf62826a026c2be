//! Where brackets, colons, commas and strings are, in whatever order.

use super::block::{BLOCK_LEN, Classes, classify_baseline};
use super::padded;
use super::strings::Strings;

/// Where the marks of 64 bytes are; bit `i` speaks of byte `i`.
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

/// Calls `visit` with the marks of each block of a text, which need not be JSON; returns whether there
/// is a backslash in it.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
pub fn find_marks(text: &[u8], visit: impl FnMut(Marks)) -> bool {
    use std::arch::is_x86_feature_detected;
    if is_x86_feature_detected!("avx512bw") {
        // SAFETY: the processor was asked for what the function needs.
        unsafe { find_avx512(text, visit) }
    } else if is_x86_feature_detected!("avx2") {
        // SAFETY: as above.
        unsafe { find_avx2(text, visit) }
    } else {
        find_with(text, visit, classify_baseline)
    }
}

/// Calls `visit` with the marks of each block of a text, which need not be JSON; returns whether there
/// is a backslash in it.
#[cfg(not(all(target_arch = "x86_64", feature = "std")))]
pub fn find_marks(text: &[u8], visit: impl FnMut(Marks)) -> bool {
    find_with(text, visit, classify_baseline)
}

/// Does what [`find_with`] does, 64 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx512bw")]
fn find_avx512(text: &[u8], visit: impl FnMut(Marks)) -> bool {
    // A closure has the features of the function around it.
    find_with(text, visit, |block| super::block::classify_avx512(block))
}

/// Does what [`find_with`] does, 32 bytes at a time.
#[cfg(all(target_arch = "x86_64", feature = "std"))]
#[target_feature(enable = "avx2")]
fn find_avx2(text: &[u8], visit: impl FnMut(Marks)) -> bool {
    find_with(text, visit, |block| super::block::classify_avx2(block))
}

/// Visits the marks of a text, whose bytes `classify` tells apart.
#[inline(always)]
pub(super) fn find_with(
    text: &[u8],
    mut visit: impl FnMut(Marks),
    classify: impl Fn(&[u8; BLOCK_LEN]) -> Classes,
) -> bool {
    let mut strings = Strings::new();
    let (blocks, rest) = text.as_chunks::<BLOCK_LEN>();
    for block in blocks {
        visit(Marks::of(&classify(block), &mut strings));
    }
    if !rest.is_empty() {
        let block = padded(text, rest.len());
        visit(Marks::of(&classify(&block), &mut strings));
    }
    strings.has_backslashes()
}

impl Marks {
    #[inline(always)]
    fn of(classes: &Classes, strings: &mut Strings) -> Self {
        let (quotes, in_string) = strings.block(classes);
        Self {
            brackets: (classes.opens | classes.closes) & !in_string,
            closing: quotes & !in_string,
            colons: classes.colons & !in_string,
            commas: classes.commas & !in_string,
            opening: quotes & in_string,
        }
    }
}
