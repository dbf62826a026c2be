//! Tests that zlib-rs, an independent implementation, inflates what is compressed here.

use alloc::{format, vec, vec::Vec};

use proptest::prelude::*;
use zlib_rs::{Deflate, DeflateFlush, Inflate, InflateFlush};

use super::{BYTES_MAX, Encoder, symbols::MATCH_BYTES_MAX};
use crate::deflate::compressor::TAIL;

/// Compresses a message, and checks that it inflates to the same bytes.
fn round_trip(encoder: &mut Encoder, input: &[u8], level: u8, window_bits: u8) -> Vec<u8> {
    let mut output = vec![];
    let bytes = encoder.encode(input, level, window_bits, &mut output);
    output.truncate(bytes);
    let message = [&output[..], &TAIL].concat();
    let mut inflated = vec![0; input.len() + 1];
    let mut inflate = Inflate::new(false, 15);
    let status = inflate.decompress(&message, &mut inflated, InflateFlush::SyncFlush);
    assert!(status.is_ok(), "{status:?}");
    assert_eq!(inflate.total_in(), message.len() as u64);
    assert_eq!(inflate.total_out(), input.len() as u64);
    assert!(inflated[..input.len()] == *input, "not what was compressed");
    output
}

fn random(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 16
    }
}

fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = random(seed | 1);
    (0..bytes).map(|_| random() as u8).collect()
}

/// Returns JSON rows like those sent to dashboards.
fn json(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = random(seed | 1);
    let mut text = format!(r#"{{"id":{seed},"rows":["#);
    while text.len() < bytes {
        let (channel, offset, bid) = (random() % 500, random() % 1_000_000, random() % 100_000);
        text += &format!(
            r#"{{"channel":"prices:{channel}","offset":{offset},"bid":{}.{:02},"open":{}}},"#,
            bid / 100,
            bid % 100,
            bid % 2 == 0,
        );
    }
    text.into_bytes()[..bytes].to_vec()
}

/// Generates inputs that are hard to compress correctly: few or many different bytes, with near,
/// far or few repetitions.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop_oneof![1..=300_usize, 1..=5_000_usize, BYTES_MAX - 300..=BYTES_MAX];
    let alphabet = prop_oneof![Just(1), Just(2), 1..=256_u64];
    let period = prop_oneof![1..=600_usize, 1..=BYTES_MAX];
    (bytes, alphabet, period, 0..=40_u64, any::<u64>()).prop_map(
        |(bytes, alphabet, period, damage, seed)| {
            let mut random = random(seed | 1);
            let mut built: Vec<u8> = Vec::with_capacity(bytes);
            for at in 0..bytes {
                let is_new = at < period || random() % 1_000 < damage;
                let new = (random() % alphabet) as u8;
                built.push(if is_new { new } else { built[at - period] });
            }
            built
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_messages_survive_the_round_trip(
        messages in prop::collection::vec(input(), 1..12),
        level in 1_u8..=9,
        window_bits in 8_u8..=15,
    ) {
        let mut encoder = Encoder::new();
        for message in messages {
            round_trip(&mut encoder, &message, level, window_bits);
        }
    }
}

#[test]
fn sizes_around_every_limit_survive_the_round_trip() {
    let mut encoder = Encoder::new();
    let sizes = (1..=40)
        .chain(MATCH_BYTES_MAX - 2..=MATCH_BYTES_MAX + 12)
        .chain(2 * MATCH_BYTES_MAX - 2..=2 * MATCH_BYTES_MAX + 12)
        .chain(BYTES_MAX - 2..=BYTES_MAX);
    for bytes in sizes {
        for level in 1..=9 {
            round_trip(&mut encoder, &vec![0; bytes], level, 15);
            round_trip(&mut encoder, &noise(bytes as u64, bytes), level, 15);
            round_trip(&mut encoder, &json(bytes as u64, bytes), level, 8);
        }
    }
}

#[test]
fn messages_do_not_refer_to_earlier_ones() {
    let mut encoder = Encoder::new();
    // Places start over several times, with all kinds of messages before and after.
    for round in 0..400_u64 {
        let bytes = [250, 1_000, 4_099, BYTES_MAX][round as usize % 4];
        round_trip(&mut encoder, &json(round / 8, bytes), 4, 15);
    }
    let fresh = round_trip(&mut Encoder::new(), &json(7, 3_000), 4, 15);
    assert_eq!(round_trip(&mut encoder, &json(7, 3_000), 4, 15), fresh);
}

#[test]
fn matches_reach_exactly_as_far_as_the_window() {
    for window_bits in 8..=13 {
        let window = 1 << window_bits;
        // Six bits per byte, so that the block is never a stored one.
        let added = |distance: usize| {
            let mut input = noise(3, distance);
            input.iter_mut().for_each(|byte| *byte %= 64);
            let bytes = |input: &[u8]| {
                let mut encoder = Encoder::new();
                round_trip(&mut encoder, input, 9, window_bits).len()
            };
            let before = bytes(&input);
            input.extend_from_within(..64);
            bytes(&input) - before
        };
        assert!(added(window) < 12, "{window_bits} bits");
        assert!(added(window + 1) > 36, "{window_bits} bits");
    }
}

#[test]
fn incompressible_messages_grow_by_six_bytes() {
    let mut encoder = Encoder::new();
    for bytes in [1, 2, 100, 1_000, BYTES_MAX] {
        let output = round_trip(&mut encoder, &noise(1, bytes), 4, 15);
        assert!(output.len() <= bytes + 6, "{bytes}");
    }
}

#[test]
fn equal_bytes_become_the_longest_matches() {
    let output = round_trip(&mut Encoder::new(), &[7; BYTES_MAX], 4, 15);
    // 64 matches of 9 bits, and the definition of the codes.
    assert!(output.len() < 100, "{} bytes", output.len());
}

#[test]
fn frequencies_that_make_the_deepest_tree_are_coded() {
    let (mut input, mut counts) = (vec![], (1_usize, 1_usize));
    for byte in 0..18 {
        input.resize(input.len() + counts.0, byte);
        counts = (counts.1, counts.0 + counts.1);
    }
    let mut random = random(1);
    for at in (1..input.len()).rev() {
        input.swap(at, random() as usize % (at + 1));
    }
    for level in 1..=9 {
        round_trip(&mut Encoder::new(), &input, level, 8);
    }
}

#[test]
fn json_becomes_as_short_as_with_zlib() {
    let mut encoder = Encoder::new();
    for level in [3, 4, 6, 9] {
        for bytes in [250, 1_000, 3_000, 10_000] {
            let (mut ours, mut others) = (0, 0);
            for seed in 0..50 {
                let message = json(seed, bytes);
                ours += round_trip(&mut encoder, &message, level, 12).len();
                let mut deflate = Deflate::new(level.into(), false, 12);
                let mut output = vec![0; bytes];
                let run = deflate.compress(&message, &mut output, DeflateFlush::SyncFlush);
                assert!(run.is_ok());
                others += deflate.total_out() as usize - TAIL.len();
            }
            // Ours may be at most half a percent longer, which short messages need.
            assert!(
                ours * 200 <= others * 201,
                "level {level}, {bytes} bytes: {ours}, {others}"
            );
        }
    }
}
