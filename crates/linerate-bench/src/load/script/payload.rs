//! Payloads of any length, all of them different.

use crate::cell::Payload;

/// Words for ASCII text.
const WORDS: [&str; 16] = [
    "price ",
    "volume ",
    "order ",
    "at ",
    "offset ",
    "of ",
    "channel ",
    "the ",
    "client ",
    "reads ",
    "a ",
    "message, ",
    "then ",
    "answers. ",
    "No ",
    "delay! ",
];

/// Characters of one to four bytes, mixed as in text that is not English.
const CHARACTERS: [char; 16] = [
    'e', 'ü', 'ß', 'κ', 'ό', 'с', 'м', ' ', 'é', '語', '日', '本', '한', '🍣', '𝄞', 'a',
];

/// Builds payload number `number`, which is `bytes` bytes long. As many payloads differ as that
/// length allows. They begin with their number, and the rest differs as well.
pub(super) fn build(payload: Payload, number: usize, bytes: usize) -> Vec<u8> {
    let mut random = Random(number as u64 + 1);
    let mut built = Vec::with_capacity(bytes + 128);
    match payload {
        Payload::Ascii => {
            push_number(&mut built, number);
            while built.len() < bytes {
                built.extend_from_slice(random.pick(&WORDS).as_bytes());
            }
            built.truncate(bytes);
        }
        Payload::Binary => {
            // No UTF-8 character begins with these bits.
            built.push(0x80 | (number & 0x3F) as u8);
            built.extend_from_slice(&((number >> 6) as u32).to_le_bytes()[..3]);
            while built.len() < bytes {
                built.extend_from_slice(&random.next().to_le_bytes());
            }
            built.truncate(bytes);
        }
        Payload::Json => json(&mut built, number, bytes, &mut random),
        Payload::Multibyte => {
            push_number(&mut built, number);
            built.truncate(bytes);
            let mut character = [0; 4];
            while built.len() + character.len() <= bytes {
                let text = random.pick(&CHARACTERS).encode_utf8(&mut character);
                built.extend_from_slice(text.as_bytes());
            }
            built.resize(bytes, b'.');
        }
    }
    built
}

/// Builds rows like those that dashboards receive, padded to the length.
fn json(built: &mut Vec<u8>, number: usize, bytes: usize, random: &mut Random) {
    const TAIL: &str = r#"],"padding":""}"#;
    let head = format!(r#"{{"id":{number},"rows":["#);
    if bytes < head.len() + TAIL.len() {
        // The length is too short for an object, so the payload is a number without a leading zero.
        let mut rest = number;
        for _ in 0..bytes {
            built.push(b'1' + (rest % 9) as u8);
            rest /= 9;
        }
        return;
    }
    built.extend_from_slice(head.as_bytes());
    loop {
        let comma = if built.len() == head.len() { "" } else { "," };
        let row = format!(
            r#"{comma}{{"channel":"prices:{}","offset":{},"bid":{}.{:02},"open":{},"note":"Grüße"}}"#,
            random.next() % 500,
            random.next() % 1_000_000,
            random.next() % 1_000,
            random.next() % 100,
            random.next() > u64::MAX / 2,
        );
        if built.len() + row.len() + TAIL.len() > bytes {
            break;
        }
        built.extend_from_slice(row.as_bytes());
    }
    let padding = bytes - built.len() - TAIL.len();
    let (before, after) = TAIL.split_at(TAIL.len() - 2);
    built.extend_from_slice(before.as_bytes());
    built.resize(built.len() + padding, b'.');
    built.extend_from_slice(after.as_bytes());
}

/// Appends a number in three characters, the lowest digit first, so that payloads with successive
/// numbers differ in their first byte.
fn push_number(built: &mut Vec<u8>, number: usize) {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut rest = number;
    for _ in 0..3 {
        built.push(DIGITS[rest % DIGITS.len()]);
        rest /= DIGITS.len();
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): repeatable, and random enough that payloads do not
/// compress well by chance.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Copy>(&mut self, from: &[T; 16]) -> T {
        from[(self.next() % 16) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn payloads_have_their_length_and_kind() {
        for bytes in (0..200).chain([1_024, 70_001]) {
            for number in [0, 1, 61, 62, 5_000] {
                let text = |payload| String::from_utf8(build(payload, number, bytes)).unwrap();
                assert_eq!(text(Payload::Ascii).len(), bytes);
                assert!(text(Payload::Ascii).is_ascii());
                assert_eq!(text(Payload::Multibyte).len(), bytes);
                let json = text(Payload::Json);
                assert_eq!(json.len(), bytes);
                if bytes > 0 {
                    let value: Result<serde_json::Value, _> = serde_json::from_str(&json);
                    assert!(value.is_ok(), "{json}");
                }
                let binary = build(Payload::Binary, number, bytes);
                assert_eq!(binary.len(), bytes);
                assert!(bytes == 0 || String::from_utf8(binary).is_err());
            }
        }
        let multibyte = String::from_utf8(build(Payload::Multibyte, 3, 4_096)).unwrap();
        for bytes in 1..=4 {
            assert!(
                multibyte
                    .chars()
                    .any(|character| character.len_utf8() == bytes)
            );
        }
    }

    #[test]
    fn payloads_of_a_cycle_differ_in_both_halves() {
        let kinds = [
            Payload::Ascii,
            Payload::Binary,
            Payload::Json,
            Payload::Multibyte,
        ];
        for kind in kinds {
            for bytes in [5, 8, 20, 1_024] {
                let built: Vec<_> = (0..2_048)
                    .map(|number| build(kind, number, bytes))
                    .collect();
                let distinct: HashSet<_> = built.iter().collect();
                assert_eq!(distinct.len(), built.len(), "{kind:?} of {bytes}");
                if bytes == 1_024 {
                    let halves: HashSet<_> = built.iter().map(|built| &built[512..]).collect();
                    assert_eq!(halves.len(), built.len(), "{kind:?}");
                }
            }
        }
    }
}
