//! Integers in field blocks, byte by byte (RFC 7541 §5.1).

/// How many bits may be behind the first byte. The standard leaves the limit to us and calls more an error;
/// h2 has the same.
const BITS_MAX: u32 = 28;

/// An integer, as far as it has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    value: u32,
    /// How many bits have come behind the first byte; `None` if it is at its end.
    bits: Option<u32>,
}

impl Integer {
    /// Begins an integer of which `prefix_bits`, less than 8, are in the first byte.
    pub(super) const fn begin(first: u8, prefix_bits: u32) -> Self {
        let mask = (1 << prefix_bits) - 1;
        let value = first & mask;
        Self {
            value: value as u32,
            bits: if value == mask { Some(0) } else { None },
        }
    }

    /// Takes another byte; `None` if it was at its end, or there are too many.
    pub(super) fn push(mut self, byte: u8) -> Option<Self> {
        let bits = self.bits?;
        self.value += u32::from(byte & 0x7f) << bits;
        self.bits = (byte & 0x80 != 0).then_some(bits + 7);
        if self.bits == Some(BITS_MAX) {
            return None;
        }
        Some(self)
    }

    /// Returns the integer; `None` if more belongs to it.
    pub(super) fn value(self) -> Option<u32> {
        self.bits.is_none().then_some(self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(prefix_bits: u32, bytes: &[u8]) -> Option<Option<u32>> {
        let (first, rest) = bytes.split_first().unwrap();
        let mut integer = Integer::begin(*first, prefix_bits);
        for byte in rest {
            integer = integer.push(*byte)?;
        }
        Some(integer.value())
    }

    #[test]
    fn the_examples_of_the_rfc_are_read() {
        assert_eq!(read(5, b"\xea"), Some(Some(10)));
        assert_eq!(read(5, b"\x1f\x9a\x0a"), Some(Some(1_337)));
        assert_eq!(read(5, b"\x1f\x9a"), Some(None), "more belongs to it");
        assert_eq!(read(7, b"\x7f\x00"), Some(Some(127)));
    }

    #[test]
    fn an_integer_has_an_end() {
        let most = (1 << 28) - 1 + 127;
        assert_eq!(read(7, b"\xff\xff\xff\xff\x7f"), Some(Some(most)));
        assert_eq!(read(7, b"\xff\xff\xff\xff\xff"), None);
        assert_eq!(read(7, b"\xff\x80\x80\x80\x80"), None);
        assert_eq!(read(7, b"\x00\x00"), None, "it was at its end");
    }
}
