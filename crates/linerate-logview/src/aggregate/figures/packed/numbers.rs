//! Lists of numbers and of texts as bytes that compress well.
//!
//! Numbers are split into their bytes: first the lowest byte of all numbers, then the next one.
//! Frequent values have low codes, so the higher bytes are mostly zeros.

use super::UnpackError;
use crate::aggregate::dictionary::{Dictionary, FIRST};

/// Appends the bytes of numbers, and how many bytes each of them has: at least `bytes_min`.
pub(super) fn write(numbers: &[u64], bytes_min: u8, out: &mut Vec<u8>) {
    let highest = numbers.iter().copied().max().unwrap_or(0);
    let bytes = (u64::BITS - highest.leading_zeros()).div_ceil(8) as u8;
    let bytes = bytes.max(bytes_min);
    out.push(bytes);
    for plane in 0..bytes {
        out.extend(numbers.iter().map(|number| (number >> (8 * plane)) as u8));
    }
}

/// Appends a number of items.
pub(super) fn write_count(count: usize, out: &mut Vec<u8>) {
    let count = u32::try_from(count).expect("the items of a report are limited to fewer than 2^32");
    out.extend(count.to_le_bytes());
}

/// Appends texts with their lengths.
pub(super) fn write_texts<'a>(texts: impl Iterator<Item = &'a [u8]> + Clone, out: &mut Vec<u8>) {
    let lengths: Vec<u64> = texts.clone().map(|text| text.len() as u64).collect();
    write_count(lengths.len(), out);
    write(&lengths, 1, out);
    texts.for_each(|text| out.extend_from_slice(text));
}

/// Reads what the functions above have written. No list is longer than the bytes that are left.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], UnpackError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(UnpackError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], UnpackError> {
        let bytes = self.bytes(N)?;
        bytes.try_into().map_err(|_| UnpackError::Truncated)
    }

    pub(super) fn count(&mut self) -> Result<usize, UnpackError> {
        Ok(u32::from_le_bytes(self.array()?) as usize)
    }

    /// Reads as many numbers as the caller knows that there are.
    pub(super) fn numbers(&mut self, count: usize) -> Result<Vec<u64>, UnpackError> {
        let [bytes] = self.array()?;
        if bytes > 8 {
            return Err(UnpackError::Malformed {
                what: "the width of a column",
            });
        }
        let size = count.checked_mul(bytes.into());
        let planes = self.bytes(size.ok_or(UnpackError::Truncated)?)?;
        let mut numbers = vec![0; count];
        for (plane, bytes) in planes.chunks_exact(count.max(1)).enumerate() {
            for (number, &byte) in numbers.iter_mut().zip(bytes) {
                *number |= u64::from(byte) << (8 * plane);
            }
        }
        Ok(numbers)
    }

    /// Reads numbers of which each has at least one byte, with their count.
    pub(super) fn counted_numbers(&mut self) -> Result<Vec<u64>, UnpackError> {
        let count = self.count()?;
        if self.rest.len() <= count || self.rest[0] == 0 {
            return Err(UnpackError::Truncated);
        }
        self.numbers(count)
    }

    /// Reads codes of up to `code_max`.
    pub(super) fn codes(&mut self, count: usize, code_max: usize) -> Result<Vec<u32>, UnpackError> {
        let numbers = self.numbers(count)?;
        let codes = numbers.into_iter().map(|number| {
            let code = u32::try_from(number).ok();
            code.filter(|&code| code as usize <= code_max)
                .ok_or(UnpackError::Malformed { what: "a code" })
        });
        codes.collect()
    }

    pub(super) fn texts(&mut self) -> Result<Vec<&'a [u8]>, UnpackError> {
        let lengths = self.counted_numbers()?;
        let texts = lengths.into_iter().map(|length| {
            let length = usize::try_from(length).map_err(|_| UnpackError::Truncated)?;
            self.bytes(length)
        });
        texts.collect()
    }

    /// Reads texts as a dictionary, in which they must be different and not empty.
    pub(super) fn dictionary(&mut self) -> Result<Dictionary, UnpackError> {
        let texts = self.texts()?;
        let bytes = texts.iter().map(|text| text.len()).sum();
        let mut dictionary = Dictionary::new(texts.len(), bytes);
        for (code, text) in (FIRST..).zip(texts) {
            if dictionary.code(text) != code {
                return Err(UnpackError::Malformed { what: "a value" });
            }
        }
        Ok(dictionary)
    }

    /// Ends reading.
    pub(super) fn finish(self) -> Result<(), UnpackError> {
        match self.rest {
            [] => Ok(()),
            _ => Err(UnpackError::Malformed { what: "the end" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Reader, UnpackError, write, write_count, write_texts};

    proptest! {
        #[test]
        fn numbers_and_texts_survive_the_round_trip(
            numbers in prop::collection::vec(any::<u64>().prop_flat_map(|max| 0..=max), 0..50),
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..9),
        ) {
            let mut out = Vec::new();
            write(&numbers, 0, &mut out);
            write_texts(texts.iter().map(Vec::as_slice), &mut out);
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.numbers(numbers.len()).unwrap(), numbers);
            prop_assert_eq!(reader.texts().unwrap(), texts);
            reader.finish().unwrap();
        }
    }

    #[test]
    fn a_claimed_count_beyond_the_bytes_is_refused() {
        for width in [0, 1, 8] {
            let mut out = Vec::new();
            write_count(u32::MAX as usize, &mut out);
            out.push(width);
            out.extend([0; 100]);
            let result = Reader::new(&out).counted_numbers();
            assert_eq!(result, Err(UnpackError::Truncated));
        }
        let result = Reader::new(&[9, 0, 0]).numbers(0);
        assert!(matches!(result, Err(UnpackError::Malformed { .. })));
    }

    #[test]
    fn equal_and_empty_values_and_remaining_bytes_are_refused() {
        for texts in [[&b"a"[..], b"a"], [b"a", b""]] {
            let mut out = Vec::new();
            write_texts(texts.into_iter(), &mut out);
            let result = Reader::new(&out).dictionary();
            assert!(matches!(result, Err(UnpackError::Malformed { .. })));
        }
        let result = Reader::new(&[0]).finish();
        assert!(matches!(result, Err(UnpackError::Malformed { .. })));
    }
}
