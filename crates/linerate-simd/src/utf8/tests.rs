//! UTF-8 validation equals the standard library's, wherever the bytes are split.

mod exhaustive;
#[cfg(feature = "bytes")]
mod piece;
mod text;

use alloc::string::String;
use alloc::vec::Vec;
use std::vec;

use proptest::prelude::*;

use super::{BLOCK_LEN, Utf8Error, Validator, validate, validate_masked};
use crate::mask;

const KEY: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// The verdict of the standard library on some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The bytes are text.
    Complete,
    /// The bytes are text except for an incomplete last code point.
    Unfinished,
    /// The byte at this offset is the first that cannot continue text.
    FailsAt(usize),
}

/// The reference: the first byte that cannot continue text is the last byte of the shortest prefix
/// for which the standard library reports an error other than an incomplete end.
fn verdict(bytes: &[u8]) -> Verdict {
    match core::str::from_utf8(bytes) {
        Ok(_) => Verdict::Complete,
        Err(error) if error.error_len().is_none() => Verdict::Unfinished,
        Err(error) => {
            let fails = |at: &usize| {
                core::str::from_utf8(&bytes[..=*at]).is_err_and(|error| error.error_len().is_some())
            };
            let at = (error.valid_up_to()..bytes.len()).find(fails);
            Verdict::FailsAt(at.expect("the whole fails, and it is one of the prefixes"))
        }
    }
}

/// Pushes `pieces` one after the other and returns the verdict on all.
fn push_all(pieces: &[&[u8]]) -> Verdict {
    let (mut validator, mut unmasking) = (Validator::new(), Validator::new());
    let mut before = 0;
    for piece in pieces {
        let mut masked = piece.to_vec();
        mask::apply(KEY, before, &mut masked);
        let pushed = validator.push(piece);
        assert_eq!(unmasking.push_masked(KEY, before, &mut masked), pushed);
        assert_eq!((&masked[..], &unmasking), (*piece, &validator));
        if let Err(error) = pushed {
            assert!(!validator.is_complete());
            return Verdict::FailsAt(before + error.valid_up_to());
        }
        before += piece.len();
    }
    if validator.is_complete() {
        Verdict::Complete
    } else {
        Verdict::Unfinished
    }
}

/// Asserts that `bytes` get the reference's verdict whole, byte by byte and at every split.
#[track_caller]
fn assert_agrees(bytes: &[u8]) {
    let expected = verdict(bytes);
    match (validate(bytes), expected) {
        (Ok(text), Verdict::Complete) => assert_eq!(text.as_bytes(), bytes),
        (Err(error), Verdict::Unfinished) => assert_eq!(error.valid_up_to(), bytes.len()),
        (Err(error), Verdict::FailsAt(at)) => assert_eq!(error.valid_up_to(), at),
        (result, expected) => panic!("{result:?} instead of {expected:?} for {bytes:02x?}"),
    }
    let step = if cfg!(miri) { 1 + bytes.len() / 8 } else { 1 };
    for split in (0..=bytes.len()).step_by(step) {
        let (head, tail) = bytes.split_at(split);
        assert_eq!(push_all(&[head, tail]), expected, "{head:02x?} {tail:02x?}");
    }
    assert_eq!(
        push_all(&bytes.chunks(1).collect::<Vec<_>>()),
        expected,
        "{bytes:02x?}"
    );
}

#[test]
fn texts_of_the_autobahn_suite_agree() {
    for bytes in [
        &b""[..],
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xf4\x90\x80\x80edited",
        b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited",
        b"\xf8\x88\x80\x80\x80",
        b"\xfc\x84\x80\x80\x80\x80",
        b"\xef\xbf\xbf\xf0\x9f\xbf\xbf\xf4\x8f\xbf\xbf\xef\xbf\xbd\xef\xbf\xbe",
        b"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf",
    ] {
        assert_agrees(bytes);
    }
}

#[test]
fn first_invalid_byte_is_reported() {
    for (bytes, at) in [
        (&b"\x80"[..], 0),
        (b"\xc0\x80", 0),
        (b"\xc1\xbf", 0),
        (b"\xf5", 0),
        (b"\xff", 0),
        (b"\xe0\x9f\xbf", 1),
        (b"\xed\xa0\x80", 1),
        (b"\xf0\x8f\xbf\xbf", 1),
        (b"\xf4\x90", 1),
        (b"\xf4\x8f\xbf\x7f", 3),
        (b"\xe2\x82\xac\xe2\x28", 4),
    ] {
        assert_eq!(push_all(&[bytes]), Verdict::FailsAt(at), "{bytes:02x?}");
        assert_agrees(bytes);
    }
}

#[test]
fn every_state_of_a_validator_is_a_byte() {
    let mut states = Vec::new();
    for first in 0..=u8::MAX {
        for rest in [&b""[..], b"\x80", b"\x90", b"\xbf\x80"] {
            let mut validator = Validator::new();
            _ = validator.push(&[first]).and_then(|()| validator.push(rest));
            let state = validator.state();
            assert_eq!(Validator::from_state(state), Some(validator), "{first:02x}");
            states.push(state);
        }
    }
    states.sort_unstable();
    states.dedup();
    let expected = [0x00, 0xc2, 0xe0, 0xe1, 0xed, 0xf0, 0xf1, 0xf4, 0xff];
    assert_eq!(states, expected);
    let known = |&state: &u8| Validator::from_state(state).is_some();
    assert_eq!((0..=u8::MAX).filter(known).collect::<Vec<_>>(), expected);
}

#[test]
fn validator_is_small_and_refuses_input_after_an_error_until_reset() {
    assert!(size_of::<Validator>() <= 4);
    let mut validator = Validator::default();
    assert_eq!(
        validator.push(b"Spam\xff"),
        Err(Utf8Error { valid_up_to: 4 })
    );
    for byte in 0..=u8::MAX {
        assert_eq!(validator.push(&[byte]), Err(Utf8Error { valid_up_to: 0 }));
        assert!(!validator.is_complete());
    }
    validator.reset();
    assert!(validator.is_complete());
    assert_eq!(validator.push(b"Spam"), Ok(()));
}

#[test]
fn non_ascii_byte_is_detected_at_every_position() {
    for len in (0..=BLOCK_LEN + 9).step_by(if cfg!(miri) { 9 } else { 1 }) {
        let mut bytes = vec![0x7f; len];
        assert!(super::ascii::is_ascii(&bytes), "{len} bytes");
        for at in 0..len {
            bytes[at] = 0x80;
            assert!(!super::ascii::is_ascii(&bytes), "byte {at} of {len}");
            bytes[at] = 0x7f;
        }
    }
}

#[test]
fn whole_text_may_not_end_within_a_code_point() {
    assert_eq!(
        validate(b"Spam \xe2\x82").map_err(|error| error.valid_up_to()),
        Err(7)
    );
}

#[test]
fn error_reports_the_position() {
    let error = validate(b"Spam\xff").expect_err("no code point begins with FF");
    assert_eq!(std::format!("{error}"), "invalid UTF-8 at byte 4");
}

#[test]
fn sequences_agree_at_every_position_of_a_long_text() {
    // Longer than the short path and a vector, so that each sequence occurs in all lanes.
    let len = 2 * BLOCK_LEN + 3;
    let step = if cfg!(miri) { 127 } else { 1 };
    for sequence in [
        &b"\xc3\xa9"[..],
        b"\xe2\x82\xac",
        b"\xf0\x9f\x8d\xa3",
        b"\xc3",
        b"\xe2\x82",
        b"\xf0\x9f\x8d",
        b"\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xff",
    ] {
        for at in (0..=len - sequence.len()).step_by(step) {
            let mut bytes = vec![b'x'; len];
            bytes[at..at + sequence.len()].copy_from_slice(sequence);
            assert_agrees(&bytes);
        }
    }
}

/// Generates bytes that are often text, and often nearly text.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => prop::collection::vec(b' '..=b'~', 0..=40),
        8 => any::<char>().prop_map(|c| String::from(c).into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..crate::drawn_len(240) / 10).prop_map(|pieces| pieces.concat())
}

#[test]
fn masked_text_is_validated_like_text() {
    for len in (0..=700_usize).step_by(if cfg!(miri) { 97 } else { 1 }) {
        for (at, byte) in [
            (len, 0),
            (0, 0xff),
            (len / 2, 0xff),
            (len.wrapping_sub(1), 0xc3),
        ] {
            let mut payload = vec![b'x'; len];
            if let Some(place) = payload.get_mut(at) {
                *place = byte;
            }
            let unmasked = [b"\xa5\xa5\xa5", &payload[..], b"\xa5"].concat();
            let mut input = unmasked.clone();
            mask::naive::apply(KEY, 0, &mut input[3..3 + len]);
            let text = validate_masked(KEY, &mut input, 3..3 + len);
            let expected = validate(&payload);
            assert_eq!(text.map(|(text, _)| text), expected, "{len} bytes");
            assert_eq!(input, unmasked, "{len} bytes");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn texts_agree_at_every_split(bytes in texts()) {
        assert_agrees(&bytes);
    }

    #[test]
    fn texts_agree_in_pieces_of_any_size(
        bytes in texts(),
        sizes in prop::collection::vec(0..150_usize, 0..12),
    ) {
        let mut rest = &bytes[..];
        let mut pieces = Vec::new();
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(push_all(&pieces), verdict(&bytes));
    }
}
