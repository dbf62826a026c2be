//! Text must be UTF-8, and fails at the first invalid byte (RFC 6455 §8.1).

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{ProtocolError, Role};
use linerate_testkit::{Cuts, Frame, Seen, feed};
use proptest::prelude::*;

use crate::situation::{ROLES, Situation, assert_fails, close_frame, engine_in, read};

/// Asserts that text fails with 1007 at `offset`: in one frame, in two fragments split anywhere,
/// and after text that is long enough for vector kernels.
fn assert_invalid(text: &[u8], offset: usize) {
    for role in ROLES {
        let error = ProtocolError::InvalidUtf8 {
            offset: offset as u64,
        };
        let whole = Frame::new(0x1, text).to_role(role).to_bytes();
        assert_fails(role, &Situation::BETWEEN_MESSAGES, &whole, error, 1007);
        let rest = Frame::new(0x0, text).to_role(role).to_bytes();
        assert_fails(role, &[Situation::InText], &rest, error, 1007);
        for at in 0..=text.len() {
            let fragments = [
                Frame::new(0x1, &text[..at]).with_fin(false),
                Frame::new(0x0, &text[at..]),
            ]
            .map(|frame| frame.to_role(role).to_bytes());
            assert_fails(role, &[Situation::Idle], &fragments.concat(), error, 1007);
        }
        for padding in [61, 127, 200] {
            let text = [&vec![b'x'; padding][..], text].concat();
            let wire = Frame::new(0x1, &text).to_role(role).to_bytes();
            let record = read(role, &wire);
            let offset = (padding + offset) as u64;
            assert_eq!(
                record.seen,
                [Seen::Error(ProtocolError::InvalidUtf8 { offset })]
            );
        }
    }
}

#[test]
fn u01_overlong_forms_fail_with_1007() {
    assert_invalid(b"\xc0\x80", 0);
    assert_invalid(b"\xc1\xbf", 0);
    assert_invalid(b"\xe0\x80\x80", 1);
    assert_invalid(b"\xe0\x9f\xbf", 1);
    assert_invalid(b"\xf0\x80\x80\x80", 1);
    assert_invalid(b"a\xf0\x8f\xbf\xbf", 2);
}

#[test]
fn u02_surrogates_fail_with_1007() {
    assert_invalid(b"\xed\xa0\x80", 1);
    assert_invalid(b"a\xed\xaf\xbf", 2);
    assert_invalid(b"\xed\xb0\x80", 1);
    assert_invalid(b"\xed\xbf\xbf", 1);
    assert_invalid(b"\xed\xa0\x80\xed\xb0\x80", 1);
}

#[test]
fn u03_code_points_above_10ffff_fail_with_1007() {
    assert_invalid(b"\xf4\x90\x80\x80", 1);
    assert_invalid(b"\xf5\x80\x80\x80", 0);
    assert_invalid(b"a\xf8\x88\x80\x80\x80", 1);
    assert_invalid(b"\xfe", 0);
    assert_invalid(b"\xff", 0);
}

#[test]
fn u04_lone_continuations_and_unfinished_code_points_fail_with_1007() {
    assert_invalid(b"\x80", 0);
    assert_invalid(b"a\xbf", 1);
    assert_invalid(b"\xc3\xa9\xa9", 2);
    // Each would be valid if the message did not end here.
    assert_invalid(b"\xc3", 1);
    assert_invalid(b"\xe2\x82", 2);
    assert_invalid(b"abc\xf0\x9f\x92", 6);
}

#[test]
fn u05_code_points_split_over_fragments_and_reads_are_accepted() {
    let text = "aé€𐍈 κόσμε \u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}";
    for role in ROLES {
        for at in 0..=text.len() {
            let wire = [
                Frame::new(0x1, &text.as_bytes()[..at]).with_fin(false),
                Frame::new(0x9, b""),
                Frame::new(0x0, &text.as_bytes()[at..]),
            ]
            .map(|frame| frame.to_role(role).to_bytes())
            .concat();
            let record = read(role, &wire);
            assert_eq!(record.seen, [Seen::Ping(Vec::new()), Seen::text(text)]);
        }
        let every_byte = (text.bytes().enumerate())
            .map(|(at, byte)| {
                let frame = Frame::new(if at == 0 { 0x1 } else { 0x0 }, &[byte]);
                let last = at + 1 == text.len();
                frame.with_fin(last).to_role(role).to_bytes()
            })
            .collect::<Vec<_>>()
            .concat();
        let mut engine = engine_in(Situation::Idle, role);
        let record = feed(&mut engine, &every_byte, Cuts::Random(5));
        assert_eq!(record.seen, [Seen::text(text)]);
    }
}

#[test]
fn u05_code_points_at_the_edges_of_vector_blocks_are_accepted() {
    for role in ROLES {
        for padding in 56..=132 {
            let text = "x".repeat(padding) + "€𐍈é" + &"y".repeat(70);
            let wire = Frame::new(0x1, text.as_bytes()).to_role(role).to_bytes();
            let record = read(role, &wire);
            assert_eq!(record.seen, [Seen::text(&text)]);
        }
    }
}

#[test]
fn u06_an_unfinished_frame_fails_at_its_first_bad_byte() {
    for role in ROLES {
        for (valid, bad) in [
            (
                &b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xf4"[..],
                0x90,
            ),
            (b"plain ", 0xFF),
            (b"\xed", 0xA0),
            (b"\xe2\x82", b'x'),
        ] {
            let text = [valid, &[bad], b"behind"].concat();
            // The header claims a very long frame.
            let frame = Frame::new(0x1, &text).with_claimed_bytes(10_000);
            let mut wire = frame.to_role(role).to_bytes();
            let bad_at = wire.len() - b"behind".len() - 1;

            let mut engine = engine_in(Situation::Idle, role);
            for (at, byte) in wire.chunks_mut(1).enumerate().take(bad_at + 1) {
                let mut events = engine.handle_input(byte, Duration::ZERO);
                let failed = matches!(events.next(), Some(Err(_)));
                assert_eq!(failed, at == bad_at, "byte {at}");
            }
            let mut output = Vec::new();
            engine.poll_transmit(&mut output);
            assert_eq!(output, close_frame(role, 1007));
        }
    }
}

#[test]
fn u06_a_bad_first_fragment_fails_before_the_message_ends() {
    for role in ROLES {
        let first = Frame::new(0x1, b"ok \xff").with_fin(false).to_role(role);
        let error = ProtocolError::InvalidUtf8 { offset: 3 };
        assert_fails(role, &[Situation::Idle], &first.to_bytes(), error, 1007);
    }
}

/// Tests every sequence of four bytes at the edges of the grammar (RFC 3629 §4). The validator's
/// own tests cover sequences of all bytes.
#[test]
fn u07_sequences_of_boundary_bytes_are_judged_like_std() {
    let edges = *b"\x00\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff";
    let count = edges.len();
    let config = Arc::default();
    let mut wire = *b"\x81\x04....";
    for i in 0..count.pow(4) {
        let text = [1, count, count.pow(2), count.pow(3)].map(|place| edges[i / place % count]);
        wire[2..].copy_from_slice(&text);
        let cuts = Cuts::At(3 + i % 4);
        let mut engine = Situation::Idle.engine(Role::Client, &config);
        let record = feed(&mut engine, &wire, cuts);
        match std::str::from_utf8(&text) {
            Ok(text) => assert_eq!(record.seen, [Seen::text(text)]),
            Err(_) => assert_eq!(record.output, close_frame(Role::Client, 1007), "{text:x?}"),
        }
    }
}

/// Validity after inflating matters only if compression is negotiated. Otherwise RSV1, which marks
/// compressed messages, is refused before the payload is examined.
#[test]
fn u08_compressed_text_is_refused_while_compression_is_declined() {
    // "Hello" in a compressed message (RFC 7692 §7.2.3.1).
    let deflated = b"\xf2\x48\xcd\xc9\xc9\x07\x00";
    for role in ROLES {
        let wire = Frame::new(0x1, deflated).with_rsv(4).to_role(role);
        let error = ProtocolError::ReservedBits { rsv: 4 };
        assert_fails(role, &Situation::READING, &wire.to_bytes(), error, 1002);
    }
}

/// Generates text that is valid, or nearly so.
fn almost_text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => any::<char>().prop_map(|c| c.to_string().into_bytes()),
        4 => "[ -~]{0,40}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(0x80..=0xFFu8, 1..3),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Returns the offset of the first byte that cannot be part of valid text, computed only with std:
/// the shortest prefix that no continuation makes valid, or the end of text that ends too early.
fn first_bad_byte(text: &[u8]) -> Option<usize> {
    let hopeless = |end: &usize| match std::str::from_utf8(&text[..*end]) {
        Ok(_) => false,
        Err(error) => error.error_len().is_some() || is_dead_end(&text[error.valid_up_to()..*end]),
    };
    match (1..=text.len()).find(hopeless) {
        Some(end) => Some(end - 1),
        None => std::str::from_utf8(text).is_err().then_some(text.len()),
    }
}

/// Returns whether no further bytes can complete the code point that has begun.
fn is_dead_end(beginning: &[u8]) -> bool {
    let continuations: [&[u8]; 6] = [
        b"\x80",
        b"\xbf",
        b"\x80\x80",
        b"\xbf\xbf",
        b"\x80\x80\x80",
        b"\xbf\x80\x80",
    ];
    !continuations
        .iter()
        .any(|rest| std::str::from_utf8(&[beginning, rest].concat()).is_ok())
}

proptest! {
    #[test]
    fn verdict_equals_std_for_any_fragments_and_reads(
        text in almost_text(),
        splits in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        seed in any::<u64>(),
        to_server in any::<bool>(),
    ) {
        let role = if to_server { Role::Server } else { Role::Client };
        let mut ends: Vec<usize> = splits.iter().map(|at| at.index(text.len() + 1)).collect();
        ends.sort_unstable();
        ends.push(text.len());
        let mut wire = Vec::new();
        let mut start = 0;
        for (i, end) in ends.iter().enumerate() {
            let frame = Frame::new(if i == 0 { 0x1 } else { 0x0 }, &text[start..*end]);
            let frame = frame.with_fin(i + 1 == ends.len());
            wire.extend(frame.to_role(role).to_bytes());
            start = *end;
        }
        let seen = match std::str::from_utf8(&text) {
            Ok(text) => Seen::text(text),
            Err(_) => {
                let offset = first_bad_byte(&text).expect("it is not valid") as u64;
                Seen::Error(ProtocolError::InvalidUtf8 { offset })
            }
        };
        for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Random(seed)] {
            let record = feed(&mut engine_in(Situation::Idle, role), &wire, cuts);
            prop_assert_eq!(&record.seen, std::slice::from_ref(&seen), "{:?}", cuts);
            if matches!(seen, Seen::Error(_)) {
                prop_assert_eq!(record.output, close_frame(role, 1007));
            }
        }
    }
}
