//! Frames of every kind, split in every way.

use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::*;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\xff\xff";
const REQUEST: &[u8] = b"\0\0\x01\x01\x04\0\0\0\x01\x82";

/// Returns the verdict on this input after the preface and settings, which must not depend on how
/// the input is split.
fn judged(frames: &[&[u8]]) -> Result<(), Reason> {
    let whole = [PREFACE, SETTINGS, &frames.concat()].concat();
    let verdict = judged_in([&whole[..]]);
    assert_eq!(judged_in(whole.chunks(1)), verdict);
    for at in 0..=whole.len() {
        let (first, second) = whole.split_at(at);
        assert_eq!(judged_in([first, second]), verdict, "cut at {at}");
    }
    verdict
}

fn judged_in<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<(), Reason> {
    let mut frames = Frames::default();
    pieces.into_iter().try_for_each(|piece| {
        let broken = frames.handle_input(piece);
        broken.map_err(|broken| broken.reason)
    })
}

#[test]
fn frames_in_order_pass() {
    let data = b"\0\0\x05\0\0\0\0\0\x01\0\0\x09\x09\x09";
    let window = b"\0\0\x04\x08\0\0\0\0\x01\0\0\0\x01";
    let ping = b"\0\0\x08\x06\0\0\0\0\0linerate";
    let unknown = b"\0\0\x01\xb7\xff\0\0\0\x01a";
    assert_eq!(judged(&[REQUEST, data, window, ping, unknown]), Ok(()));
}

#[test]
fn what_came_whole_before_a_fault_is_good() {
    let fault = b"\0\0\x07\x06\0\0\0\0\0";
    let input = [PREFACE, SETTINGS, REQUEST, fault].concat();
    let broken = Frames::default().handle_input(&input).unwrap_err();
    assert_eq!(broken.good_bytes, input.len() - fault.len());
    let mut frames = Frames::default();
    let (first, second) = input.split_at(input.len() - 1);
    assert_eq!(frames.handle_input(first), Ok(()));
    let broken = frames.handle_input(second).unwrap_err();
    assert_eq!(broken.good_bytes, 0);
}

#[test]
fn s19_settings_come_first() {
    for first in [&b"\0\0\x08\x06\0\0\0\0\0"[..], b"\0\0\0\x04\x01\0\0\0\0"] {
        let input = [PREFACE, first].concat();
        let broken = Frames::default().handle_input(&input).unwrap_err();
        assert_eq!(broken.reason, Reason::PROTOCOL_ERROR);
        assert_eq!(broken.good_bytes, PREFACE.len());
    }
}

#[test]
fn s20_a_window_beyond_the_most_is_an_error_of_flow_control() {
    let most = b"\0\0\x06\x04\0\0\0\0\0\0\x04\x7f\xff\xff\xff";
    let over = b"\0\0\x0c\x04\0\0\0\0\0\0\x05\xff\xff\xff\xff\0\x04\x80\0\0\0";
    assert_eq!(judged(&[most]), Ok(()));
    assert_eq!(judged(&[over]), Err(Reason::FLOW_CONTROL_ERROR));
}

#[test]
fn s03_nothing_comes_between_the_parts_of_a_field_block() {
    let begun = b"\0\0\x01\x01\0\0\0\0\x01\x82";
    let more = b"\0\0\0\x09\0\0\0\0\x01";
    let last = b"\0\0\0\x09\x04\0\0\0\x01";
    let ping = b"\0\0\x08\x06\0\0\0\0\0linerate";
    let other = b"\0\0\0\x09\x04\0\0\0\x03";
    assert_eq!(judged(&[begun, more, last, ping]), Ok(()));
    for frames in [
        &[&begun[..], ping][..],
        &[begun, other],
        &[begun, more, REQUEST],
        &[begun, last, last],
        &[last],
    ] {
        assert_eq!(judged(frames), Err(Reason::PROTOCOL_ERROR), "{frames:?}");
    }
}

#[test]
fn s18_padding_and_priority_are_no_part_of_a_field_block() {
    let whole = b"\0\0\x09\x01\x2c\0\0\0\x01\x02\0\0\0\0\x10\x82\xff\xff";
    let empty = b"\0\0\x08\x01\x2c\0\0\0\x01\x02\0\0\0\0\x10\xff\xff";
    let over = b"\0\0\x09\x01\x2c\0\0\0\x01\x04\0\0\0\0\x10\x82\xff\xff";
    assert_eq!(judged(&[whole, empty, REQUEST]), Ok(()));
    assert_eq!(judged(&[over]), Err(Reason::PROTOCOL_ERROR));
}

#[test]
fn a_stream_that_should_come_before_itself_ends_the_connection() {
    let itself = b"\0\0\x06\x01\x24\0\0\0\x05\x80\0\0\x05\x10\x82";
    let another = b"\0\0\x06\x01\x24\0\0\0\x03\0\0\0\x05\x10\x82";
    assert_eq!(judged(&[another]), Ok(()));
    assert_eq!(judged(&[another, itself]), Err(Reason::PROTOCOL_ERROR));
}

#[test]
fn s25_a_field_block_that_can_not_be_decoded_is_an_error_of_compression() {
    let index = b"\0\0\x02\x01\x04\0\0\0\x01\x82\x80";
    let cut = b"\0\0\x02\x01\x04\0\0\0\x01\x82\xff";
    let begun = b"\0\0\x02\x01\0\0\0\0\x01\x82\xff";
    let ended = b"\0\0\x01\x09\x04\0\0\0\x01\0";
    let empty = b"\0\0\0\x09\x04\0\0\0\x01";
    assert_eq!(judged(&[index]), Err(Reason::COMPRESSION_ERROR));
    assert_eq!(judged(&[cut]), Err(Reason::COMPRESSION_ERROR));
    assert_eq!(judged(&[begun, empty]), Err(Reason::COMPRESSION_ERROR));
    // The number continues in the next frame: 127, which is not a valid index.
    assert_eq!(judged(&[begun, ended]), Err(Reason::COMPRESSION_ERROR));
    let name = b"\0\0\x02\x01\0\0\0\0\x01\x82\x0f";
    let rest = b"\0\0\x03\x09\x04\0\0\0\x01\x01\x01a";
    assert_eq!(judged(&[name, rest, REQUEST]), Ok(()));
}

#[test]
fn s11_a_path_with_a_fragment_is_told() {
    let path = b"\0\0\x06\x01\x04\0\0\0\x01\x44\x04/a#b";
    let again = b"\0\0\x01\x01\x04\0\0\0\x03\xbe";
    let input = [PREFACE, SETTINGS, path, REQUEST, again].concat();
    for piece_bytes in [1, input.len()] {
        let mut frames = Frames::default();
        for piece in input.chunks(piece_bytes) {
            frames.handle_input(piece).unwrap();
        }
        assert_eq!(frames.malformed().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(frames.malformed().count(), 0);
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

#[test]
fn s04_a_stream_that_was_ended_has_no_more_data_or_fields() {
    let data = b"\0\0\0\0\0\0\0\0\x01";
    let end = b"\0\0\0\0\x01\0\0\0\x01";
    let other = b"\0\0\0\0\0\0\0\0\x03";
    let reset = b"\0\0\x04\x03\0\0\0\0\x01\0\0\0\x08";
    assert_eq!(judged(&[REQUEST, end, reset, other]), Ok(()));
    for behind in [&data[..], end, REQUEST] {
        let verdict = judged(&[REQUEST, end, reset, behind]);
        assert_eq!(verdict, Err(Reason::STREAM_CLOSED));
    }
    let whole = b"\0\0\x01\x01\x05\0\0\0\x01\x82";
    assert_eq!(judged(&[whole, data]), Err(Reason::STREAM_CLOSED));
    let begun = b"\0\0\x01\x01\x01\0\0\0\x01\x82";
    let last = b"\0\0\0\x09\x04\0\0\0\x01";
    assert_eq!(judged(&[begun, last]), Ok(()));
}

/// Returns a frame of a random kind on one of a few streams. Its length and fields are usually
/// valid.
fn any_frame(random: &mut SmallRng) -> Vec<u8> {
    let kind = random.random_range(0..11_u8);
    let flags = [0, 0x1, 0x4, 0x5, 0x8, 0x25, 0x2c][random.random_range(0..7)];
    let usual = [2, 7, 5, 4, 6, 4, 8, 8, 4, 2, 3][usize::from(kind)];
    let bytes = match random.random_range(0..20_u32) {
        0 => random.random_range(0..40),
        _ => usual,
    };
    let mut frame = vec![0, 0, bytes, kind, flags, 0, 0, 0];
    frame.push(random.random_range(0..4));
    let fields = [0x82, 0xbe, 0x44, 0x01, b'#', 0x00, 0x20, 0x81];
    frame.extend((0..bytes).map(|_| fields[random.random_range(0..fields.len())]));
    frame
}

#[test]
fn whatever_comes_is_judged_alike_however_it_is_cut() {
    let mut random = SmallRng::seed_from_u64(9113);
    let mut verdicts = std::collections::BTreeMap::new();
    for _ in 0..3_000 {
        let mut input = [PREFACE, SETTINGS, REQUEST].concat();
        for _ in 0..random.random_range(1..8) {
            input.extend(any_frame(&mut random));
        }
        let verdict = judged_in([&input[..]]);
        assert_eq!(judged_in(input.chunks(1)), verdict, "{input:?}");
        let mut rest = &input[..];
        let pieces = std::iter::from_fn(|| {
            let (piece, behind) = rest.split_at(rest.len().min(random.random_range(1..20)));
            rest = behind;
            (!piece.is_empty()).then_some(piece)
        });
        assert_eq!(judged_in(pieces), verdict, "{input:?}");
        *verdicts.entry(format!("{verdict:?}")).or_insert(0_u32) += 1;
    }
    // Each kind of verdict occurred often enough to be meaningful.
    assert_eq!(verdicts.len(), 5, "{verdicts:?}");
    assert!(verdicts.values().all(|count| *count > 20), "{verdicts:?}");
}
