//! Estimates whether a message is worth compressing, without compressing it.

/// Shorter messages have too few bytes for an estimate.
const JUDGED_BYTES_MIN: usize = 256;

/// The number of bytes to sample, in [`PLACES`] runs.
const SAMPLE_BYTES: usize = 512;

const PLACES: usize = 4;

/// Returns whether the byte values are unevenly distributed, as in text and most formats, but not
/// in compressed or encrypted data.
///
/// Counts how many pairs of bytes in a sample are equal: 1 in 256 in random data, about 15 in 256
/// in English text and JSON. Below twice the value of random data, shorter codes for frequent bytes
/// save nothing. This does not detect repeated sequences of random bytes.
pub(super) fn is_compressible(bytes: &[u8]) -> bool {
    if bytes.len() < JUDGED_BYTES_MIN {
        return true;
    }
    let mut counts = [0_u16; 256];
    let mut sampled = 0_u32;
    let run = SAMPLE_BYTES.min(bytes.len()) / PLACES;
    let stride = (bytes.len() - run) / (PLACES - 1);
    for place in 0..PLACES {
        for byte in &bytes[place * stride..place * stride + run] {
            counts[usize::from(*byte)] += 1;
        }
        sampled += run as u32;
    }
    let squares: u32 = counts.iter().map(|&count| u32::from(count).pow(2)).sum();
    let equal_pairs = squares - sampled;
    equal_pairs * 128 > sampled * (sampled - 1)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn random_bytes_are_distinguished_from_text_at_any_length() {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        for length in [256, 257, 511, 1_000, 65_536] {
            let noise: Vec<u8> = (0..length).map(|_| random()).collect();
            assert!(!is_compressible(&noise), "{length} random bytes");
            let text = br#"{"symbol":"ABC","price":123.45,"size":100}"#;
            let json: Vec<u8> = text.iter().copied().cycle().take(length).collect();
            assert!(is_compressible(&json), "{length} bytes of JSON");
            let base64: Vec<u8> = noise.iter().map(|byte| b'0' + byte % 64).collect();
            assert!(is_compressible(&base64), "{length} bytes of base64");
        }
    }

    #[test]
    fn short_messages_get_the_benefit_of_the_doubt() {
        let all_different: Vec<u8> = (0..=254).collect();
        assert!(is_compressible(&all_different));
        assert!(is_compressible(b""));
    }
}
