//! Fossil's delta format: the difference between two byte strings
//! (<https://fossil-scm.org/home/doc/tip/www/delta_format.wiki>).
//!
//! A delta begins with the length of the target and a line feed. Then come segments, each of which
//! copies a range of the source or inserts bytes, and at the end a checksum of the target. Numbers
//! are written in base 64.

mod apply;
mod create;

pub use self::{
    apply::{ApplyError, apply},
    create::create,
};

/// The digits of numbers.
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

/// The maximum length in bytes of strings between which a delta is made. It bounds the time and the
/// memory that a delta takes, also in clients.
pub const BYTES_MAX: usize = 256 * 1024;

/// Returns the sum of the 32-bit words in `bytes`, big-endian and padded with zeros.
fn checksum(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]);
    words.fold(0, |sum: u32, word| {
        sum.wrapping_add(u32::from_be_bytes(*word))
    })
}

#[cfg(test)]
mod tests;
