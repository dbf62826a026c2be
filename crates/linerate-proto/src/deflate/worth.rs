//! Whether a message is worth compressing, found out before any of it is compressed.

/// Shorter messages are too short for a judgement.
const JUDGED_BYTES_MIN: usize = 256;

/// Bytes that are looked at, in [`PLACES`] runs.
const SAMPLE_BYTES: usize = 512;

const PLACES: usize = 4;

/// Returns whether the bytes are unevenly distributed, as those of text and of most formats are; what
/// is compressed or encrypted already is not.
///
/// Counts how often two bytes of a sample are equal. In random bytes 1 of 256 pairs are, in English
/// and JSON 15; below twice the former nothing can be gained by coding frequent bytes shorter.
/// Repetitions of such bytes are not seen.
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
    fn random_bytes_are_told_from_text_at_any_length() {
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
