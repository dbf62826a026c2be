//! Any bytes from an HTTP/2 client in the guard in front of h2.
#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use linerate_h2::fuzzing::{OVERFLOWS_MAX, Verdict, WINDOWS_MAX, judge};
use linerate_testkit::Cuts;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;

// The first byte chooses the pieces in which the bytes arrive, and whether the client preface is
// put before them. However they are split, the verdict is the same, and h2 gets all of them unless
// the settings are missing.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let wire = match choice & 0x80 {
        0 => [PREFACE, data].concat(),
        _ => data.to_vec(),
    };
    let are_settings_missing = are_settings_missing(&wire);
    let whole = read(&wire, Cuts::Whole);
    for judged in [
        &whole,
        &read(&wire, Cuts::Every(1)),
        &read(&wire, Cuts::Random(u64::from(*choice))),
    ] {
        assert_eq!(judged.are_settings_missing, are_settings_missing);
        assert_eq!(judged.overflown, whole.overflown);
        assert!(wire.starts_with(&judged.passed));
        match are_settings_missing {
            // A part of the first frame's header may have been passed on before the rest arrived.
            true => assert!(judged.passed.len() < PREFACE_BYTES + HEAD_BYTES),
            false => assert_eq!(judged.passed.len(), wire.len()),
        }
    }
    compare_windows(&whole.passed, &whole.overflown);
});

fn read(wire: &[u8], cuts: Cuts) -> Verdict {
    let mut ends = Vec::new();
    let mut end = 0;
    cuts.for_each_piece(wire, |piece| {
        end += piece.len();
        ends.push(end);
    });
    ends.dedup();
    let mut begin = 0;
    judge(ends.into_iter().filter(|end| *end > 0).map(|end| {
        let piece = &wire[begin..end];
        begin = end;
        piece
    }))
}

/// Returns whether the first frame after the preface is not a client's settings (RFC 9113 §3.4).
fn are_settings_missing(wire: &[u8]) -> bool {
    let head = wire.get(PREFACE_BYTES..PREFACE_BYTES + HEAD_BYTES);
    head.is_some_and(|head| head[3] != 0x4 || head[4] & 0x1 != 0)
}

/// Nothing is written here, so a window has grown too far when the sum of its updates exceeds the
/// largest window and the reductions by settings (RFC 9113 §6.9.1, §6.9.2).
fn compare_windows(wire: &[u8], noted: &[u32]) {
    const SETTINGS: u8 = 0x4;
    const WINDOW_UPDATE: u8 = 0x8;
    const LARGEST: u64 = (1 << 31) - 1;
    let (mut grown, mut overflown) = (BTreeMap::new(), Vec::new());
    let (mut initial, mut taken) = (65_535, 0);
    let mut rest = wire.get(PREFACE_BYTES..).unwrap_or_default();
    while let Some((head, behind)) = rest.split_at_checked(HEAD_BYTES) {
        let bytes = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let payload = &behind[..bytes.min(behind.len())];
        rest = &behind[payload.len()..];
        match (head[3], payload) {
            (SETTINGS, payload) => {
                for setting in payload.chunks_exact(6).filter(|it| it[..2] == [0, 4]) {
                    let value =
                        u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
                    taken += u64::from(u32::saturating_sub(initial, value));
                    initial = value;
                }
            }
            (WINDOW_UPDATE, [a, b, c, d]) if stream != 0 && bytes == 4 => {
                let sum: &mut u64 = grown.entry(stream).or_default();
                *sum += u64::from(u32::from_be_bytes([a & 0x7f, *b, *c, *d]));
                if *sum > LARGEST + taken && !overflown.contains(&stream) {
                    overflown.push(stream);
                }
            }
            _ => {}
        }
    }
    let is_known = grown.len() <= WINDOWS_MAX && overflown.len() <= OVERFLOWS_MAX;
    match is_known {
        true => assert_eq!(noted, overflown),
        // Not everything is known about forgotten streams.
        false => assert!(noted.iter().all(|stream| overflown.contains(stream))),
    }
}
