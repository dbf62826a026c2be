//! Prefix codes (RFC 1951 §3.2.2).

use alloc::{boxed::Box, vec::Vec};

/// The longest code in bits.
const BITS_MAX: usize = 15;

/// A prefix code: from bits to symbols.
pub(super) struct Code {
    /// For each length, the end of its codes and of all shorter ones, aligned to the left in
    /// [`BITS_MAX`] bits.
    ends: [u16; BITS_MAX + 1],
    /// For each length, its first code in [`BITS_MAX`] bits, aligned to the left.
    firsts: [u16; BITS_MAX + 1],
    /// For each length, the index of the symbol of its first code.
    indices: [u16; BITS_MAX + 1],
    /// The symbols in the order of their codes.
    symbols: Box<[u16]>,
}

impl Code {
    /// Creates the code in which each symbol has the length in `lengths`, or does not occur if that
    /// is 0. Returns `None` if there are more codes than possible.
    pub(super) fn new(lengths: &[u8]) -> Option<Self> {
        let mut counts = [0_u32; BITS_MAX + 1];
        for length in lengths {
            counts[usize::from(*length)] += 1;
        }
        let (mut end, mut index) = (0_u32, 0_u32);
        let mut code = Self {
            ends: [0; BITS_MAX + 1],
            firsts: [0; BITS_MAX + 1],
            indices: [0; BITS_MAX + 1],
            symbols: Box::default(),
        };
        let mut symbols = Vec::with_capacity(lengths.len());
        for (bits, &count) in (0..).zip(&counts).skip(1) {
            code.firsts[bits] = end as u16;
            code.indices[bits] = index as u16;
            end += count << (BITS_MAX - bits);
            if end > 1 << BITS_MAX {
                return None;
            }
            index += count;
            code.ends[bits] = end as u16;
            let of_length = |&(_, length): &(u16, &u8)| usize::from(*length) == bits;
            let of_length = (0..).zip(lengths).filter(of_length);
            symbols.extend(of_length.map(|(symbol, _)| symbol));
        }
        code.symbols = symbols.into();
        Some(code)
    }

    /// Returns the symbol whose code `bits` begin with, and the length of the code; `None` if there
    /// is none.
    #[inline]
    pub(super) fn decode(&self, bits: u64) -> Option<(usize, usize)> {
        // The first bit of a code is its most significant one.
        let code = (bits as u16).reverse_bits() >> 1;
        let length = (1..=BITS_MAX).find(|&length| code < self.ends[length])?;
        let above = (code - self.firsts[length]) >> (BITS_MAX - length);
        let symbol = self
            .symbols
            .get(usize::from(self.indices[length] + above))?;
        Some(((*symbol).into(), length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc_is_decoded() {
        // §3.2.2: "Consider the alphabet ABCDEFGH, with bit lengths (3, 3, 3, 3, 3, 2, 4, 4)".
        let code = Code::new(&[3, 3, 3, 3, 3, 2, 4, 4]).unwrap();
        let codes = ["010", "011", "100", "101", "110", "00", "1110", "1111"];
        for (symbol, text) in codes.into_iter().enumerate() {
            let reversed: std::string::String = text.chars().rev().collect();
            let bits = u64::from_str_radix(&reversed, 2).unwrap();
            assert_eq!(code.decode(bits), Some((symbol, text.len())), "{text}");
        }
    }

    #[test]
    fn too_many_codes_and_unused_ones_are_recognized() {
        assert!(Code::new(&[1, 1, 1]).is_none());
        let single = Code::new(&[0, 1]).unwrap();
        assert_eq!((single.decode(0), single.decode(1)), (Some((1, 1)), None));
        assert_eq!(Code::new(&[0, 0]).unwrap().decode(0), None);
    }
}
