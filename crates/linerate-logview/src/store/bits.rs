//! Numbers with a fixed number of bits, packed without gaps into bytes.

/// How many bytes are read at once. The last number is followed by this many bytes.
const WORD_BYTES: usize = size_of::<u64>();
/// The widest number that always lies within the word that begins at its first byte.
const WIDTH_IN_WORD_MAX: u32 = 57;

/// Returns how many bits a number needs.
pub(super) fn width(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}

/// Returns how many bytes `numbers` packed numbers occupy.
pub(super) fn packed_bytes(numbers: usize, width: u32) -> usize {
    match width {
        0 => 0,
        _ => (numbers * width as usize).div_ceil(8) + WORD_BYTES,
    }
}

/// Appends numbers of up to `width` bits.
#[inline]
pub(super) fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let start = out.len();
    let mut count = 0;
    let mut word = 0u64;
    let mut used = 0;
    for number in numbers {
        count += 1;
        word |= number << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // Keep the bits that did not fit. There are none if the shift would be 64.
            word = number.checked_shr(width - used).unwrap_or(0);
        }
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.resize(start + packed_bytes(count, width), 0);
}

/// Returns the number at index `at`.
#[inline]
pub(super) fn get(packed: &[u8], width: u32, at: usize) -> u64 {
    if width == 0 {
        return 0;
    }
    let bit = at * width as usize;
    let (byte, shift) = (bit / 8, bit % 8);
    let number = word(packed, byte) >> shift;
    let number = if width > WIDTH_IN_WORD_MAX && shift > 0 {
        number | ((word(packed, byte + 1) >> shift) << 8)
    } else {
        number
    };
    number & (u64::MAX >> (u64::BITS - width))
}

/// Calls `each` with all numbers in order.
#[inline]
pub(super) fn for_each(packed: &[u8], width: u32, numbers: usize, mut each: impl FnMut(u64)) {
    if width == 0 {
        (0..numbers).for_each(|_| each(0));
        return;
    }
    if width > WIDTH_IN_WORD_MAX {
        (0..numbers).for_each(|at| each(get(packed, width, at)));
        return;
    }
    let mask = u64::MAX >> (u64::BITS - width);
    let mut bit = 0;
    for _ in 0..numbers {
        each((word(packed, bit / 8) >> (bit % 8)) & mask);
        bit += width as usize;
    }
}

#[inline]
fn word(packed: &[u8], at: usize) -> u64 {
    let bytes = packed.get(at..at + WORD_BYTES);
    bytes
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{for_each, get, pack, packed_bytes, width};

    #[test]
    fn widths_are_those_of_the_highest_bit() {
        let numbers = [0, 1, 2, 3, 4, 255, 256, u64::MAX];
        assert_eq!(numbers.map(width), [0, 1, 2, 2, 3, 8, 9, 64]);
        assert_eq!(packed_bytes(9, 0), 0);
        assert_eq!(packed_bytes(9, 1), 2 + 8);
    }

    proptest! {
        #[test]
        fn numbers_survive_the_round_trip_at_any_width(
            width in 0u32..=64,
            numbers in prop::collection::vec(any::<u64>(), 0..200),
            before in 0usize..9,
        ) {
            let mask = 1u64.checked_shl(width).map_or(u64::MAX, |it| it - 1);
            let numbers: Vec<u64> = numbers.iter().map(|number| number & mask).collect();
            let mut out = vec![0xAA; before];
            pack(numbers.iter().copied(), width, &mut out);
            let packed = &out[before..];
            prop_assert_eq!(packed.len(), packed_bytes(numbers.len(), width));
            for (at, number) in numbers.iter().enumerate() {
                prop_assert_eq!(get(packed, width, at), *number);
            }
            let mut seen = Vec::new();
            for_each(packed, width, numbers.len(), |number| seen.push(number));
            prop_assert_eq!(seen, numbers);
        }
    }
}
