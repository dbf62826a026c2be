//! Integers in field blocks, byte by byte (RFC 7541 §5.1).

/// Maximum number of bits after the first byte. The standard lets implementations choose a limit
/// and treat longer integers as errors; h2 has the same limit.
const BITS_MAX: u32 = 28;

/// An integer, as far as it has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Integer {
    value: u32,
    /// The number of bits that have arrived after the first byte; `None` once the integer is
    /// complete.
    bits: Option<u32>,
}

impl Integer {
    /// Starts an integer that has `prefix_bits` bits, fewer than 8, in its first byte.
    pub(super) const fn begin(first: u8, prefix_bits: u32) -> Self {
        let mask = (1 << prefix_bits) - 1;
        let value = first & mask;
        Self {
            value: value as u32,
            bits: if value == mask { Some(0) } else { None },
        }
    }

    /// Adds a byte; returns `None` if the integer was already complete or is too long.
    pub(super) fn push(mut self, byte: u8) -> Option<Self> {
        let bits = self.bits?;
        self.value += u32::from(byte & 0x7f) << bits;
        self.bits = (byte & 0x80 != 0).then_some(bits + 7);
        if self.bits == Some(BITS_MAX) {
            return None;
        }
        Some(self)
    }

    /// Returns the integer, or `None` if it is not complete.
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
        assert_eq!(read(5, b"\x1f\x9a"), Some(None), "it is not complete");
        assert_eq!(read(7, b"\x7f\x00"), Some(Some(127)));
    }

    #[test]
    fn an_integer_has_an_end() {
        let most = (1 << 28) - 1 + 127;
        assert_eq!(read(7, b"\xff\xff\xff\xff\x7f"), Some(Some(most)));
        assert_eq!(read(7, b"\xff\xff\xff\xff\xff"), None);
        assert_eq!(read(7, b"\xff\x80\x80\x80\x80"), None);
        assert_eq!(read(7, b"\x00\x00"), None, "it was already complete");
    }
}
