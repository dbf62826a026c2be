//! Integers that begin in the middle of a byte (RFC 9204 §4.1.1, RFC 7541 §5.1).

/// Decodes an integer with `prefix_bits` bits in its first byte; also returns the bits of that byte
/// before them. Returns `None` if the integer is incomplete or has more than 62 bits.
pub(super) fn decode(input: &mut &[u8], prefix_bits: u32) -> Option<(u8, u64)> {
    let (first, mut rest) = input.split_first()?;
    let mask = u8::MAX >> (8 - prefix_bits);
    let flags = first.checked_shr(prefix_bits).unwrap_or(0);
    let mut value = u64::from(first & mask);
    if value == u64::from(mask) {
        let mut shift = 0;
        loop {
            let (byte, behind) = rest.split_first()?;
            rest = behind;
            // RFC 9204 §4.1.1: "QPACK implementations MUST be able to decode integers up to and
            // including 62 bits long."
            if shift > 56 {
                return None;
            }
            value += u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
    }
    *input = rest;
    Some((flags, value))
}

/// Appends an integer with `prefix_bits` bits in its first byte, after `flags`.
pub(super) fn encode(output: &mut Vec<u8>, flags: u8, prefix_bits: u32, value: usize) {
    let max = (1 << prefix_bits) - 1;
    if value < max {
        return output.push(flags | value as u8);
    }
    output.push(flags | max as u8);
    let mut rest = value - max;
    while rest >= 0x80 {
        output.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    output.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_go_both_ways() {
        for (value, prefix_bits, bytes) in [
            (10, 5, &b"\x0a"[..]),
            (1_337, 5, b"\x1f\x9a\x0a"),
            (42, 8, b"\x2a"),
        ] {
            let mut encoded = Vec::new();
            encode(&mut encoded, 0, prefix_bits, value);
            assert_eq!(encoded, bytes);
            let mut input = bytes;
            assert_eq!(decode(&mut input, prefix_bits), Some((0, value as u64)));
            assert_eq!(input, b"");
            for end in 0..bytes.len() {
                assert_eq!(decode(&mut &bytes[..end], prefix_bits), None);
            }
        }
    }

    #[test]
    fn flags_stand_in_front() {
        assert_eq!(decode(&mut &b"\xc1"[..], 6), Some((3, 1)));
    }

    #[test]
    fn an_integer_without_end_is_none() {
        assert_eq!(decode(&mut &[0xff; 20][..], 7), None);
        let longest = [&[0xff; 9][..], &[0x7f]].concat();
        assert!(decode(&mut &longest[..], 7).is_some());
    }
}
