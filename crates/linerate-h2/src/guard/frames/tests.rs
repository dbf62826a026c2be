//! Frames of every kind, split in every way.

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\xff\xff";
const REQUEST: &[u8] = b"\0\0\x01\x01\x04\0\0\0\x01\x82";

/// Returns the streams whose windows are open too far after this input.
fn overflown<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u32> {
    let mut frames = Frames::default();
    let mut found = Vec::new();
    for piece in pieces {
        frames.handle_input(piece).unwrap();
        found.extend(frames.overflown());
    }
    found
}

#[test]
fn frames_in_order_pass() {
    let data = b"\0\0\x05\0\0\0\0\0\x01\0\0\x09\x09\x09";
    let window = b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x01";
    let ping = b"\0\0\x08\x06\0\0\0\0\0linerate";
    let unknown = b"\0\0\x01\xb7\xff\0\0\0\x01a";
    let input = [
        PREFACE, SETTINGS, REQUEST, data, window, ping, unknown, SETTINGS,
    ];
    let input = input.concat();
    for at in 0..=input.len() {
        let (first, second) = input.split_at(at);
        assert_eq!(overflown([first, second]), [], "cut at {at}");
    }
}

#[test]
fn s19_settings_come_first() {
    for first in [
        &b"\0\0\x08\x06\0\0\0\0\0"[..],
        b"\0\0\0\x04\x01\0\0\0\0",
        REQUEST,
    ] {
        let input = [PREFACE, first].concat();
        let missing = Frames::default().handle_input(&input).unwrap_err();
        assert_eq!(missing.preface_bytes, PREFACE.len());
        for at in 0..input.len() {
            let mut frames = Frames::default();
            let (first, second) = input.split_at(at);
            let missing = match frames.handle_input(first) {
                Ok(()) => frames.handle_input(second),
                Err(missing) => Err(missing),
            };
            assert!(missing.is_err(), "cut at {at}");
        }
    }
}

#[test]
fn a_window_that_is_opened_too_far_is_told_of_once_it_is() {
    let largest = b"\0\0\x04\x08\0\0\0\0\x03\x7f\xff\xff\xff";
    let reserved_bit = b"\0\0\x04\x08\0\0\0\0\x05\x80\0\0\x01";
    let of_connection = b"\0\0\x04\x08\0\0\0\0\0\x7f\xff\xff\xff";
    let smaller = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\xff\xfe";
    let one = b"\0\0\x04\x08\0\0\0\0\x03\0\0\0\x01";
    let mut input = [PREFACE, SETTINGS, REQUEST, largest].concat();
    for frame in [
        &reserved_bit[..],
        of_connection,
        of_connection,
        smaller,
        one,
    ] {
        input.extend(frame);
    }
    for piece_bytes in [1, input.len()] {
        let mut frames = Frames::default();
        for piece in input.chunks(piece_bytes) {
            frames.handle_input(piece).unwrap();
            assert_eq!(frames.overflown().count(), 0);
        }
        frames.handle_input(one).unwrap();
        assert_eq!(frames.overflown().collect::<Vec<_>>(), [3]);
        assert_eq!(frames.overflown().count(), 0);
    }
}

/// Returns a frame that may change a window, or another frame, on one of a few streams.
fn any_frame(random: &mut SmallRng) -> Vec<u8> {
    let stream = random.random_range(0..4);
    let (kind, payload): (u8, &[u8]) = match random.random_range(0..8) {
        0 => (0x4, b"\0\x04\0\0\0\x07"),
        1 => (0x4, b"\0\x03\0\0\0\x07\0\x04\x7f\xff\xff\xff"),
        2 => (0x8, b"\x7f\xff\xff"),
        3 => (0x0, b"\0\0\x04\x08\0\0\0\0\x01\x7f\xff\xff\xff"),
        4 => (0x8, b"\0\0\0\x09"),
        _ => (0x8, b"\xff\xff\xff\xff"),
    };
    let head = [0, 0, payload.len() as u8, kind, 0, 0, 0, 0, stream];
    [&head, payload].concat()
}

#[test]
fn whatever_comes_is_judged_alike_however_it_is_cut() {
    let mut random = SmallRng::seed_from_u64(9113);
    let mut counts = [0_u32; 4];
    for _ in 0..3_000 {
        let mut input = [PREFACE, SETTINGS].concat();
        for _ in 0..random.random_range(1..8) {
            input.extend(any_frame(&mut random));
        }
        let found = overflown([&input[..]]);
        assert_eq!(overflown(input.chunks(1)), found, "{input:?}");
        let mut rest = &input[..];
        let pieces = std::iter::from_fn(|| {
            let (piece, behind) = rest.split_at(rest.len().min(random.random_range(1..20)));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        assert_eq!(overflown(pieces), found, "{input:?}");
        counts[found.len().min(3)] += 1;
    }
    // Each number of windows occurred often enough to be meaningful.
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}
