//! Decoding the Huffman code of header fields (RFC 7541 Appendix B).

/// The number of symbols with codes of each length, in bits. The end-of-string symbol has the last
/// code of 30 bits.
const COUNTS: [u8; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19,
    29, 0, 4,
];

/// The symbols in the order of their codes. The code is canonical, so the lengths determine it.
const SYMBOLS: [u8; 256] = [
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57,
    61, 65, 95, 98, 100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106, 107, 113, 118, 119,
    120, 121, 122, 38, 42, 44, 59, 88, 90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91,
    93, 126, 94, 125, 60, 96, 123, 92, 195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161,
    167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156,
    160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1,
    135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174,
    175, 180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159, 171, 206, 215, 225,
    236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242,
    243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252,
    253, 254, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 127, 220, 249, 10, 13, 22,
];

/// The lengths of the shortest and the longest code, in bits.
const LENGTH_MIN: usize = 5;
const LENGTH_MAX: usize = 30;

/// The codes of one length.
#[derive(Clone, Copy)]
struct Length {
    /// If the next 32 bits are less than this, they begin with a code of this length or a shorter
    /// one.
    limit: u64,
    /// The first code of this length.
    first: u32,
    /// The number of symbols with shorter codes.
    shorter: usize,
}

const LENGTHS: [Length; LENGTH_MAX + 1] = lengths();

const fn lengths() -> [Length; LENGTH_MAX + 1] {
    let mut lengths = [Length {
        limit: 0,
        first: 0,
        shorter: 0,
    }; LENGTH_MAX + 1];
    let mut bits = 1;
    while bits <= LENGTH_MAX {
        let before = lengths[bits - 1];
        let count_before = COUNTS[bits - 1];
        let first = (before.first + count_before as u32) << 1;
        lengths[bits] = Length {
            limit: (first as u64 + COUNTS[bits] as u64) << (32 - bits),
            first,
            shorter: before.shorter + count_before as usize,
        };
        bits += 1;
    }
    lengths
}

/// The length in bits up to which codes are looked up in a table; longer codes are rare in fields.
const SHORT_BITS: usize = 8;

/// For every value of [`SHORT_BITS`] bits, the symbol whose code they begin with and the length of
/// that code, or 0 if the code is longer than the table covers.
const SHORT: [(u8, u8); 1 << SHORT_BITS] = short();

const fn short() -> [(u8, u8); 1 << SHORT_BITS] {
    let mut table = [(0, 0); 1 << SHORT_BITS];
    let mut begin = 0;
    while begin < table.len() {
        let mut bits = LENGTH_MIN;
        while bits <= SHORT_BITS && table[begin].1 == 0 {
            let length = LENGTHS[bits];
            if (begin as u64) << (32 - SHORT_BITS) < length.limit {
                let code = begin >> (SHORT_BITS - bits);
                let place = length.shorter + code - length.first as usize;
                table[begin] = (SYMBOLS[place], bits as u8);
            }
            bits += 1;
        }
        begin += 1;
    }
    table
}

/// A Huffman decoder, which keeps the bits since the last complete symbol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Code {
    /// The undecoded input, in the last `bits` bits.
    value: u64,
    bits: usize,
}

impl Code {
    /// Adds a byte and passes the symbols that it completes to `take`; returns `None` at an
    /// end-of-string symbol, which must not occur.
    pub(crate) fn push(&mut self, byte: u8, mut take: impl FnMut(u8)) -> Option<()> {
        self.value = self.value << 8 | u64::from(byte);
        self.bits += 8;
        while self.bits >= LENGTH_MIN {
            // Missing bits at the end read as zeros, which never make a code look shorter than it
            // is.
            let window = (self.value << (64 - self.bits)) >> 32;
            let (symbol, bits) = match SHORT[(window >> (32 - SHORT_BITS)) as usize] {
                (_, 0) => match self.long(window) {
                    Some((place, bits)) => (*SYMBOLS.get(place)?, bits),
                    None => break,
                },
                (symbol, bits) => (symbol, usize::from(bits)),
            };
            if bits > self.bits {
                break;
            }
            take(symbol);
            self.bits -= bits;
        }
        Some(())
    }

    /// Returns the index of the next symbol, whose code is longer than the table covers, and the
    /// length of its code, if the code is complete.
    fn long(&self, window: u64) -> Option<(usize, usize)> {
        let bits = (SHORT_BITS + 1..=self.bits.min(LENGTH_MAX))
            .find(|bits| window < LENGTHS[*bits].limit)?;
        let length = LENGTHS[bits];
        let code = (window >> (32 - bits)) as u32;
        Some((length.shorter + (code - length.first) as usize, bits))
    }

    /// Returns whether the remaining bits are valid padding at the end of a string.
    ///
    /// RFC 7541 §5.2: "A padding strictly longer than 7 bits MUST be treated as a decoding error. A
    /// padding not corresponding to the most significant bits of the code for the EOS symbol MUST
    /// be treated as a decoding error."
    pub(crate) fn is_padding(&self) -> bool {
        let ones = (1 << self.bits) - 1;
        self.bits < 8 && self.value & ones == ones
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(coded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut code = Code::default();
        for byte in coded {
            code.push(*byte, |symbol| text.push(symbol))?;
        }
        code.is_padding().then_some(text)
    }

    /// Converts a string of bits to bytes, with the required padding.
    fn padded(bits: &str) -> Vec<u8> {
        let width = bits.len().next_multiple_of(8);
        let bits = format!("{bits:1<width$}");
        (0..width)
            .step_by(8)
            .map(|at| u8::from_str_radix(&bits[at..at + 8], 2).unwrap())
            .collect()
    }

    #[test]
    fn every_symbol_is_read_behind_any_other() {
        // Construct the codes as strings of bits from their order and their lengths alone.
        let mut codes = Vec::new();
        let mut code = 0_u32;
        for (bits, count) in COUNTS.iter().enumerate() {
            code <<= 1;
            for _ in 0..*count {
                codes.push(format!("{code:0bits$b}"));
                code += 1;
            }
        }
        assert_eq!(codes.pop().unwrap(), "1".repeat(30), "the end of string");
        let symbols = codes.iter().zip(SYMBOLS);
        for (first, one) in symbols.clone() {
            for (second, other) in symbols.clone().step_by(17) {
                let coded = padded(&format!("{first}{second}"));
                assert_eq!(decode(&coded).unwrap(), [one, other]);
            }
        }
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        let www = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(decode(www).unwrap(), b"www.example.com");
        assert_eq!(decode(b"\xa8\xeb\x10\x64\x9c\xbf").unwrap(), b"no-cache");
        let date = b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff";
        assert_eq!(decode(date).unwrap(), b"Mon, 21 Oct 2013 20:13:21 GMT");
    }

    #[test]
    fn padding_is_ones_and_shorter_than_a_byte() {
        assert_eq!(decode(b"").unwrap(), b"");
        assert_eq!(decode(b"\x07").unwrap(), b"0");
        assert_eq!(decode(b"\x00"), None, "zeros");
        assert_eq!(decode(b"\xff"), None, "eight bits");
        assert_eq!(decode(b"\x07\xff"), None, "eleven bits");
    }

    #[test]
    fn the_end_of_string_is_no_symbol() {
        assert_eq!(decode(b"\xff\xff\xff\xff"), None);
    }
}
