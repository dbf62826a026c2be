//! The Huffman code of header fields (RFC 7541 Appendix B).

use std::{collections::HashMap, sync::LazyLock};

/// The code length of each byte in bits, and last that of the end-of-string symbol. The code is
/// canonical, so the lengths determine it.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The symbols, by the lengths and values of their codes.
static SYMBOLS: LazyLock<HashMap<(u8, u32), u16>> = LazyLock::new(|| {
    let mut symbols: Vec<u16> = (0..=256).collect();
    symbols.sort_by_key(|symbol| (LENGTHS[usize::from(*symbol)], *symbol));
    let mut next = 0_u32;
    let mut bits = 0;
    let mut codes = HashMap::new();
    for symbol in symbols {
        let length = LENGTHS[usize::from(symbol)];
        next <<= length - bits;
        bits = length;
        codes.insert((bits, next), symbol);
        next = next.wrapping_add(1);
    }
    codes
});

/// Decodes a string. Returns `None` if it contains an invalid code or is padded incorrectly
/// (RFC 7541 §5.2).
pub(super) fn decoded(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let (mut bits, mut code) = (0, 0_u32);
    for byte in coded {
        for shift in (0..8).rev() {
            code = code << 1 | u32::from(byte >> shift & 1);
            bits += 1;
            if let Some(symbol) = SYMBOLS.get(&(bits, code)) {
                // §5.2: the end-of-string symbol must not occur.
                text.push(u8::try_from(*symbol).ok()?);
                (bits, code) = (0, 0);
            } else if bits > 30 {
                return None;
            }
        }
    }
    (bits < 8 && code == (1 << bits) - 1).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541 §C.4.1, §C.6.1.
        let name = decoded(b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff").unwrap();
        assert_eq!(name, b"www.example.com");
        assert_eq!(decoded(b"\x64\x02").unwrap(), b"302");
        assert_eq!(decoded(b"").unwrap(), b"");
    }

    #[test]
    fn padding_is_short_and_made_of_ones() {
        assert_eq!(decoded(b"\x64\x02\xff"), None);
        assert_eq!(decoded(b"\x00"), None, "zeros");
        assert_eq!(decoded(b"\xff\xff\xff\xff"), None, "the end of a string");
    }
}
