//! Variable-length integers (RFC 9000 §16).

/// The largest integer that can be encoded.
pub(crate) const MAX: u64 = (1 << 62) - 1;

/// Returns the encoded length in bytes of an integer that begins with `first`.
pub(crate) fn bytes(first: u8) -> usize {
    1 << (first >> 6)
}

/// Decodes an integer, or returns `None` if it is incomplete. Also returns its length in bytes.
pub(crate) fn decode(input: &[u8]) -> Option<(u64, usize)> {
    let bytes = bytes(*input.first()?);
    let mut value = u64::from(input[0] & 0x3f);
    for byte in input.get(1..bytes)? {
        value = value << 8 | u64::from(*byte);
    }
    Some((value, bytes))
}

/// Appends an integer in as few bytes as possible. `value` must be at most [`MAX`].
pub(crate) fn encode(output: &mut Vec<u8>, value: u64) {
    debug_assert!(value <= MAX);
    match value {
        0..0x40 => output.push(value as u8),
        0x40..0x4000 => output.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => {
            output.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes());
        }
        _ => output.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_go_both_ways() {
        for (value, bytes) in [
            (
                151_288_809_941_952_652,
                &b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..],
            ),
            (494_878_333, b"\x9d\x7f\x3e\x7d"),
            (15_293, b"\x7b\xbd"),
            (37, b"\x25"),
        ] {
            assert_eq!(decode(bytes), Some((value, bytes.len())));
            for end in 0..bytes.len() {
                assert_eq!(decode(&bytes[..end]), None);
            }
            let mut encoded = Vec::new();
            encode(&mut encoded, value);
            assert_eq!(encoded, bytes);
        }
        assert_eq!(decode(b"\x40\x25"), Some((37, 2)), "longer than necessary");
    }
}
