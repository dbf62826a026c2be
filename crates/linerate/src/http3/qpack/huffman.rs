//! The Huffman code of header fields (RFC 7541 Appendix B), as it is read.

/// How many symbols have codes of each length, in bits. The end-of-string symbol is the last of 30 bits.
const COUNTS: [u8; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19,
    29, 0, 4,
];

/// The symbols in the order of their codes: the code is canonical, so that their lengths make it.
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

/// Returns what `coded` stands for, at most 8 bytes for 5; `None` if it is none of this code.
///
/// RFC 7541 §5.2: "A padding strictly longer than 7 bits MUST be treated as a decoding error. A padding
/// not corresponding to the most significant bits of the code for the EOS symbol MUST be treated as a
/// decoding error."
pub(super) fn decode(coded: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut code = Code::default();
    for byte in coded {
        for shift in (0..8).rev() {
            if let Some(symbol) = code.push(byte >> shift & 1)? {
                text.push(symbol);
            }
        }
    }
    code.is_padding().then_some(text)
}

/// The bits since the last symbol.
#[derive(Default)]
struct Code {
    value: u32,
    bits: usize,
    /// The first code of this length.
    first: u32,
    /// How many symbols have shorter codes.
    shorter: usize,
}

impl Code {
    /// Takes a bit; returns the symbol that it completes, `None` for the end-of-string symbol, which must
    /// not occur.
    fn push(&mut self, bit: u8) -> Option<Option<u8>> {
        self.first = (self.first + u32::from(COUNTS[self.bits])) << 1;
        self.shorter += usize::from(COUNTS[self.bits]);
        self.value = self.value << 1 | u32::from(bit);
        self.bits += 1;
        let place = self.value.wrapping_sub(self.first);
        if self.value < self.first || place >= u32::from(COUNTS[self.bits]) {
            return Some(None);
        }
        let symbol = *SYMBOLS.get(self.shorter + place as usize)?;
        *self = Self::default();
        Some(Some(symbol))
    }

    fn is_padding(&self) -> bool {
        self.bits < 8 && self.value == (1 << self.bits) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
