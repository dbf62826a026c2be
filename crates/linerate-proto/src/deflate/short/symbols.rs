//! The symbols for lengths, distances and ends of blocks (RFC 1951 §3.2.5).

/// The number of symbols for literals, the end of a block, and lengths. The last two symbols have
/// codes but never occur (§3.2.6).
pub(super) const LITERALS: usize = 288;

/// The number of symbols for distances. The last two never occur.
pub(super) const DISTANCES: usize = 32;

/// The symbol for the longest match.
const LENGTH_MAX: u16 = 285;

/// The symbol that ends a block.
pub(super) const END: usize = 256;

/// The shortest and the longest string that can be referred to, in bytes.
const LENGTH_MIN: usize = 3;
pub(super) const MATCH_BYTES_MAX: usize = 258;

/// A symbol and the extra bits that follow its code.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Symbol {
    pub(super) symbol: u16,
    pub(super) extra_bits: u8,
    pub(super) extra: u16,
}

/// Returns the symbol for a length from 3 to 258.
pub(super) const fn of_length(bytes: usize) -> Symbol {
    if bytes == MATCH_BYTES_MAX {
        return Symbol {
            symbol: LENGTH_MAX,
            extra_bits: 0,
            extra: 0,
        };
    }
    // Four symbols for each power of two from 8 on.
    let scaled = scale(bytes - LENGTH_MIN, 2);
    Symbol {
        symbol: END as u16 + 1 + scaled.symbol,
        ..scaled
    }
}

/// Returns the symbol for a distance from 1 to 32,768.
pub(super) const fn of_distance(bytes: usize) -> Symbol {
    // Two symbols for each power of two from 4 on.
    scale(bytes - 1, 1)
}

/// Returns the symbol of a value, if there are 2^`fraction_bits` symbols for each power of two.
const fn scale(value: usize, fraction_bits: u32) -> Symbol {
    let high_bits = usize::BITS - value.leading_zeros();
    let extra_bits = high_bits.saturating_sub(fraction_bits + 1);
    Symbol {
        symbol: (((extra_bits as usize) << fraction_bits) + (value >> extra_bits)) as u16,
        extra_bits: extra_bits as u8,
        extra: (value & ((1 << extra_bits) - 1)) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables of RFC 1951 §3.2.5: the first length or distance of each symbol.
    const LENGTHS: [usize; 29] = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
        131, 163, 195, 227, 258,
    ];
    const FIRST_DISTANCES: [usize; 30] = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1_025,
        1_537, 2_049, 3_073, 4_097, 6_145, 8_193, 12_289, 16_385, 24_577,
    ];

    #[test]
    fn every_length_has_the_symbol_of_the_table() {
        for bytes in LENGTH_MIN..=MATCH_BYTES_MAX {
            let row = LENGTHS.iter().rposition(|&first| first <= bytes).unwrap();
            let coded = of_length(bytes);
            assert_eq!(usize::from(coded.symbol), 257 + row, "{bytes}");
            assert_eq!(LENGTHS[row] + usize::from(coded.extra), bytes);
            assert!(coded.extra < 1 << coded.extra_bits, "{bytes}");
        }
    }

    #[test]
    fn every_distance_has_the_symbol_of_the_table() {
        for bytes in 1..=32_768 {
            let found = FIRST_DISTANCES.iter().rposition(|&first| first <= bytes);
            let (row, coded) = (found.unwrap(), of_distance(bytes));
            assert_eq!(usize::from(coded.symbol), row, "{bytes}");
            assert_eq!(FIRST_DISTANCES[row] + usize::from(coded.extra), bytes);
            assert!(coded.extra < 1 << coded.extra_bits, "{bytes}");
        }
    }
}
