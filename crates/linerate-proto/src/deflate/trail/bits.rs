//! Sequences of bits, in the order of deflate: the lowest bit of a byte is the first (RFC 1951
//! §3.1.1).

use alloc::vec::Vec;
use core::ops::Range;

/// A sequence of bits.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(in crate::deflate) struct Bits {
    /// The bits after the last one are 0.
    bytes: Vec<u8>,
    len: usize,
}

impl Bits {
    /// Returns the first `len` bits of `bytes`, which must have exactly as many bytes as these
    /// need, and zeros in the remaining bits.
    pub(in crate::deflate) fn from_bytes(bytes: &[u8], len: usize) -> Option<Self> {
        let rest = 8 * bytes.len() - len.min(8 * bytes.len());
        let is_zero = bytes
            .last()
            .is_none_or(|last| last.leading_zeros() as usize >= rest);
        (bytes.len() == len.div_ceil(8) && is_zero).then(|| Self {
            bytes: bytes.into(),
            len,
        })
    }

    /// Appends the lowest `count` bits of `value`.
    pub(super) fn push(&mut self, value: u64, count: usize) {
        for at in 0..count {
            if self.len.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = (value >> at & 1) as u8;
            self.bytes[self.len / 8] |= bit << (self.len % 8);
            self.len += 1;
        }
    }

    /// Appends the bits of `bytes` in `range`.
    pub(super) fn append(&mut self, bytes: &[u8], range: Range<usize>) {
        for at in range {
            self.push((bytes[at / 8] >> (at % 8)).into(), 1);
        }
    }

    /// Returns the bits in whole bytes, after as many zeros as that needs, and the number of zeros.
    pub(super) fn aligned_to_end(&self) -> (Vec<u8>, usize) {
        let zeros = self.len.wrapping_neg() % 8;
        let mut aligned = Self::default();
        aligned.push(0, zeros);
        aligned.append(&self.bytes, 0..self.len);
        (aligned.bytes, zeros)
    }

    pub(in crate::deflate) fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(in crate::deflate) const fn len(&self) -> usize {
        self.len
    }
}

/// Reads bits.
#[derive(Clone, Copy)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The position of the next bit.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Creates a reader of `bytes` after the first `at` bits.
    pub(super) const fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(super) const fn position(&self) -> usize {
        self.at
    }

    /// Returns how many bits are left.
    pub(super) const fn left(&self) -> usize {
        8 * self.bytes.len() - self.at
    }

    /// Returns the next 56 bits; zeros after the end.
    #[inline]
    pub(super) fn peek(&self) -> u64 {
        let rest = &self.bytes[self.at / 8..];
        let word = match rest.first_chunk() {
            Some(chunk) => u64::from_le_bytes(*chunk),
            None => {
                let mut padded = [0; 8];
                padded[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(padded)
            }
        };
        word >> (self.at % 8)
    }

    /// Skips `count` bits, which must be left.
    #[inline]
    pub(super) const fn skip(&mut self, count: usize) {
        self.at += count;
    }

    /// Reads at most 32 bits; `None` if fewer are left.
    pub(super) fn read(&mut self, count: usize) -> Option<u32> {
        let value = self.peek() & ((1 << count) - 1);
        (count <= self.left()).then(|| {
            self.skip(count);
            value as u32
        })
    }

    /// Skips the remaining bits of a byte that was begun.
    pub(super) const fn align(&mut self) {
        self.at = self.at.next_multiple_of(8);
    }

    /// Returns the bits from `start` to the current position.
    pub(super) fn since(&self, start: usize) -> Bits {
        let mut bits = Bits::default();
        bits.append(self.bytes, start..self.at);
        bits
    }
}
