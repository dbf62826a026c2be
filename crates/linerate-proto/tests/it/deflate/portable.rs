//! Compressed connections that move to another engine, at every byte.

use core::time::Duration;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress};
use linerate_proto::{
    CloseCode, Config, Engine, Role,
    deflate::{Agreement, Context, Deflate, ThreadPool},
    engine::{Importer, MessageKind},
    portable::{ExportError, ImportError, Version},
};
use linerate_testkit::{Cuts, Frame, Record, Rng, Seen, TestEndpoint, feed};
use proptest::prelude::*;

use super::{FULL, compressed, deflated, engine_of, flushed, wire};
use crate::{
    portable::{
        NOW, assert_moves_do_not_matter, feed_moving, moved,
        sending::{assert_peer_sees, other, random_calls},
    },
    situation::ROLES,
};

const ALONE: Context = Context {
    window_bits: 15,
    takeover: false,
};

fn options() -> Deflate {
    let mut options = Deflate::default();
    options.exportable = true;
    options
}

fn server(context: Context) -> Engine<TestEndpoint> {
    let engine = Engine::new(TestEndpoint(Role::Server), Arc::default(), NOW);
    let agreement = Agreement {
        sending: context,
        receiving: context,
    };
    engine.with_deflate(agreement, &options(), &ThreadPool)
}

fn importer() -> Importer {
    Importer::new(Arc::default()).with_deflate(&options(), &ThreadPool)
}

/// Moves a server that reads `frames` at every byte.
fn read(context: Context, frames: &[Frame]) -> Record {
    assert_moves_do_not_matter(|| server(context), &importer(), &wire(frames))
}

/// Moves a server that reads `frames` at some bytes, and at all of `cuts`.
fn read_at(frames: &[Frame], cuts: impl IntoIterator<Item = usize>) -> Record {
    let wire = wire(frames);
    let whole = feed(&mut server(FULL), &wire, Cuts::Whole);
    for cut in cuts {
        for between in [false, true] {
            let record = feed_moving(server(FULL), &importer(), &wire, &[cut], || between);
            assert!(record == whole, "moved at {cut}");
        }
    }
    whole
}

fn json(rng: &mut Rng, records: usize) -> Vec<u8> {
    let symbols = ["ABC", "łódź", "€USD", "𐍈"];
    let records: Vec<String> = (0..records)
        .map(|_| {
            let (symbol, bid) = (*rng.pick(&symbols), rng.below(100_000));
            format!(r#"{{"symbol":"{symbol}","bid":{bid},"currency":"EUR"}}"#)
        })
        .collect();
    records.join("\n").into_bytes()
}

/// Returns the frames of a message whose payload is `compressed`, with a Ping between fragments.
fn fragments(opcode: u8, compressed: &[u8], parts: usize) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (number, part) in compressed
        .chunks(compressed.len().div_ceil(parts))
        .enumerate()
    {
        let first = Frame::new(opcode, part).with_rsv(4);
        let frame = if number == 0 {
            first
        } else {
            Frame::new(0, part)
        };
        frames.extend([frame.with_fin(false), Frame::new(9, b"between")]);
    }
    frames.push(Frame::new(0, b""));
    frames
}

#[test]
fn a_connection_with_takeover_can_move_at_every_byte() {
    let mut compress = Compress::new(Compression::best(), false);
    let mut rng = Rng::new(1);
    let mut frames = Vec::new();
    for (opcode, records, parts) in [(1, 1, 1), (1, 2, 3), (2, 12, 1), (1, 0, 1), (1, 12, 4)] {
        let mut payload = flushed(&mut compress, &json(&mut rng, records));
        payload.truncate(payload.len().saturating_sub(4));
        match parts {
            1 => frames.push(compressed(opcode, &payload)),
            _ => frames.extend(fragments(opcode, &payload, parts)),
        }
    }
    frames.push(Frame::new(1, "not compressed €".as_bytes()));
    frames.push(Frame::new(8, b"\x03\xe8"));
    assert_eq!(read(FULL, &frames).seen.len(), 14);
}

#[test]
fn messages_without_takeover_can_move_at_every_byte() {
    let mut rng = Rng::new(2);
    let mut frames = Vec::new();
    for parts in [1, 3] {
        frames.extend(fragments(1, &deflated(&json(&mut rng, 8)), parts));
    }
    let messages = |seen: &&Seen| matches!(seen, Seen::Message { .. });
    for bits in 9..=15 {
        let mut context = ALONE;
        context.window_bits = bits;
        let record = read(context, &frames);
        assert_eq!(record.seen.iter().filter(messages).count(), 2);
    }
}

/// Blocks of all kinds: stored, with the fixed codes, and with their own codes.
#[test]
fn all_kinds_of_blocks_can_be_continued() {
    let mut rng = Rng::new(3);
    let text = json(&mut rng, 10);
    for level in [0, 1, 6] {
        let mut compress = Compress::new(Compression::new(level), false);
        let mut payload = flushed(&mut compress, b"short");
        payload.extend(flushed(&mut compress, &text));
        payload.extend(flushed(&mut compress, &rng.bytes(300)));
        payload.extend(flushed(&mut compress, b"short, too"));
        payload.extend(flushed(&mut compress, &vec![7; 3_000]));
        // Some senders leave the end of the flush on.
        let whole = payload.clone();
        payload.truncate(payload.len() - 4);
        let record = read(FULL, &[compressed(2, &payload)]);
        assert_eq!(read(FULL, &[compressed(2, &whole)]), record);
        assert!(
            matches!(record.seen[..], [Seen::Message { .. }]),
            "{record:?}"
        );
    }
}

/// A message may contain streams that end (RFC 7692 §7.2.3.5).
#[test]
fn final_blocks_can_be_continued() {
    let mut rng = Rng::new(4);
    let mut payload = Vec::new();
    for records in [0, 1, 4, 0, 2] {
        let mut compress = Compress::new(Compression::default(), false);
        let text = json(&mut rng, records);
        let mut stream = Vec::with_capacity(text.len() + 100);
        let finish = FlushCompress::Finish;
        compress.compress_vec(&text, &mut stream, finish).unwrap();
        payload.extend(stream);
    }
    for context in [FULL, ALONE] {
        for end in [&b""[..], b"\x00"] {
            let payload = [&payload[..], end].concat();
            let record = read(context, &fragments(2, &payload, 3));
            assert!(
                matches!(record.seen.last(), Some(Seen::Message { .. })),
                "{record:?}"
            );
        }
    }
}

/// Few bytes that inflate to many: zlib waits for room in its output at most positions.
#[test]
fn output_that_waits_inside_the_inflater_is_not_lost() {
    let mut rng = Rng::new(5);
    for context in [FULL, ALONE] {
        for run in [16_384, 16_385, 33_000, 100_000] {
            let mut text = vec![b'a'; run];
            text.extend(rng.bytes(2));
            text.extend(vec![b'b'; 40_000]);
            let payload = deflated(&text);
            let record = read(context, &[compressed(2, &payload)]);
            assert_eq!(record.seen, [Seen::binary(&text)]);
        }
    }
}

#[test]
fn a_long_message_can_move() {
    let mut rng = Rng::new(6);
    for text in [json(&mut rng, 15_000), rng.bytes(100_000)] {
        let payload = deflated(&text);
        let frames = fragments(2, &payload, 2);
        let cuts: Vec<usize> = (0..40).map(|_| rng.below(payload.len())).collect();
        let record = read_at(&frames, cuts);
        assert_eq!(record.seen.last(), Some(&Seen::binary(&text)));
    }
}

#[test]
fn invalid_streams_fail_in_the_same_way_after_a_move() {
    let mut rng = Rng::new(7);
    let valid = deflated(&json(&mut rng, 10));
    for at in (0..valid.len()).step_by(5) {
        let mut payload = valid.clone();
        payload[at] ^= 1 << rng.below(8);
        for opcode in [1, 2] {
            read_at(&[compressed(opcode, &payload)], [at + 8, payload.len()]);
        }
    }
    for invalid in [
        &b"\x07"[..],
        b"\x06\xff",
        b"\x01\x01\x00\x00\x00",
        b"\xed\xfd",
    ] {
        let record = read(FULL, &[compressed(2, &[invalid, &[0; 8]].concat())]);
        assert!(matches!(record.seen[..], [Seen::Error(_)]), "{record:?}");
    }
}

#[test]
fn limits_hold_across_moves() {
    let mut config = Config::default();
    config.limits.message_bytes_max = 20_000;
    let config = Arc::new(config);
    let importer = Importer::new(Arc::clone(&config)).with_deflate(&options(), &ThreadPool);
    for bytes in [20_000, 20_001, 20_300] {
        let wire = wire(&[compressed(2, &deflated(&vec![0; bytes]))]);
        let start = || engine_of(Role::Server, &config, FULL, &options());
        let record = assert_moves_do_not_matter(start, &importer, &wire);
        let is_error = matches!(record.seen[..], [Seen::Error(_)]);
        assert_eq!(is_error, bytes > 20_000, "{record:?}");
    }
}

#[test]
fn without_the_option_a_move_waits_for_the_end_of_a_message() {
    let wire = wire(&[compressed(1, &deflated(b"some text that is compressed"))]);
    let (first, last) = wire.split_at(wire.len() - 1);
    let mut engine = engine_of(Role::Server, &Arc::default(), FULL, &Deflate::default());
    feed(&mut engine, first, Cuts::Whole);
    let exported = engine.export(Version::NEWEST, NOW);
    assert_eq!(exported, Err(ExportError::CompressedMessage));
    let mut input = last.to_vec();
    let mut events = engine.handle_input(&mut input, NOW);
    while let Some(event) = events.next() {
        event.unwrap();
    }
    moved(&mut engine, &importer());
}

#[test]
fn nothing_is_exported_of_what_is_ignored() {
    let wire = wire(&[compressed(1, &deflated(&vec![b'a'; 1_000]))]);
    let mut engine = server(FULL);
    feed(&mut engine, &wire, Cuts::Whole);
    let long = engine.export(Version::NEWEST, NOW).unwrap();
    feed(&mut engine, &wire[..wire.len() / 2], Cuts::Whole);
    engine.close(CloseCode::NORMAL, "", NOW).unwrap();
    feed(&mut engine, b"\x88\x80\0\0\0\0", Cuts::Whole);
    let mut engine = moved(&mut engine, &importer());
    engine.handle_eof();
    let short = engine.export(Version::NEWEST, NOW).unwrap();
    assert!(
        long.len() > 1_000 && short.len() < 100,
        "{}, {}",
        long.len(),
        short.len()
    );
}

#[test]
fn a_connection_without_compression_in_the_new_options_keeps_what_was_negotiated() {
    let mut engine = server(FULL);
    let text = "compressed as agreed, ".repeat(10);
    let mut out = Vec::new();
    engine.send_text(&mut out, &text).unwrap();
    let state = engine.export(Version::NEWEST, NOW).unwrap();
    let importer = Importer::new(Arc::default());
    let role = TestEndpoint(Role::Server);
    let mut engine = importer.import(role, &state, NOW).unwrap();
    let before = out.len();
    engine.send_text(&mut out, &text).unwrap();
    assert!(out.len() - before < before / 2, "{before}, {}", out.len());
    let mut peer = engine_of(Role::Client, &Arc::default(), FULL, &options());
    let seen = feed(&mut peer, &out, Cuts::Whole).seen;
    assert_eq!(seen, [Seen::text(&text), Seen::text(&text)]);
}

/// With a lockstep, the process compresses outside its connections, and they have no window.
#[test]
fn a_connection_may_gain_or_lose_external_takeover() {
    let text = "compressed as agreed, ".repeat(10);
    let mut external = options();
    external.external_takeover = true;
    for (before, after) in [(options(), external), (external, options())] {
        let mut engine = engine_of(Role::Server, &Arc::default(), FULL, &before);
        let mut out = Vec::new();
        engine.send_text(&mut out, &text).unwrap();
        let state = engine.export(Version::NEWEST, NOW).unwrap();
        let importer = Importer::new(Arc::default()).with_deflate(&after, &ThreadPool);
        let role = TestEndpoint(Role::Server);
        let mut engine = importer.import(role, &state, NOW).unwrap();
        assert_eq!(engine.compression(), Some(FULL));
        engine.send_text(&mut out, &text).unwrap();
        engine.send_text(&mut out, &text).unwrap();
        let mut peer = engine_of(Role::Client, &Arc::default(), FULL, &options());
        assert_eq!(
            feed(&mut peer, &out, Cuts::Whole).seen,
            vec![Seen::text(&text); 3]
        );
    }
}

#[test]
fn changed_states_never_cause_a_panic() {
    let mut rng = Rng::new(8);
    let text = json(&mut rng, 4);
    let mut stored = flushed(&mut Compress::new(Compression::none(), false), &text);
    stored.truncate(stored.len() - 4);
    let mut refused = 0;
    for (context, payload) in [(FULL, deflated(&text)), (ALONE, stored)] {
        let mut context = context;
        context.window_bits = 8;
        let wire = wire(&[compressed(1, &payload)]);
        let mut engine = server(context);
        feed(&mut engine, &wire[..wire.len() / 2], Cuts::Whole);
        let state = engine.export(Version::NEWEST, NOW).unwrap();
        for at in 0..state.len() {
            for value in [0, 1, 2, 0x7F, 0x80, 0xFF, rng.below(256) as u8] {
                let mut changed = state.clone();
                changed[at] = value;
                let role = TestEndpoint(Role::Server);
                let Ok(mut engine) = importer().import(role, &changed, NOW) else {
                    refused += 1;
                    continue;
                };
                let mut input = wire[wire.len() / 2..].to_vec();
                let mut events = engine.handle_input(&mut input, NOW);
                while events.next_raw().is_some_and(|event| event.is_ok()) {}
                _ = engine.export(Version::NEWEST, NOW);
                _ = engine.send(&mut Vec::new(), MessageKind::Text, &text);
            }
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_window_that_is_larger_than_agreed_is_refused() {
    let mut context = FULL;
    context.window_bits = 9;
    let mut engine = server(context);
    let mut out = Vec::new();
    engine.send_text(&mut out, &"abcdefgh".repeat(100)).unwrap();
    let mut state = engine.export(Version::NEWEST, NOW).unwrap();
    let length = state
        .windows(4)
        .position(|four| four == 512_u32.to_be_bytes());
    state[length.unwrap() + 2] = 4;
    let error = importer().import(TestEndpoint(Role::Server), &state, NOW);
    let (field, bytes, bytes_max) = ("sending window", 1_024, 512);
    let expected = ImportError::TooLong {
        field,
        bytes,
        bytes_max,
    };
    assert_eq!(error.unwrap_err(), expected);
}

#[test]
fn no_payload_is_shown() {
    let mut engine = server(FULL);
    let mut out = Vec::new();
    engine.send_text(&mut out, &"secret ".repeat(20)).unwrap();
    feed(
        &mut engine,
        &wire(&[compressed(1, &deflated(&b"secret ".repeat(20)))]),
        Cuts::Whole,
    );
    let shown = format!("{engine:?} {:?}", importer());
    assert!(
        !shown.contains("115, 101, 99") && !shown.contains("secret"),
        "{shown}"
    );
}

proptest! {
    #[test]
    fn random_compressed_messages_are_the_same_after_several_moves(
        seed in any::<u64>(),
        moves in 1_usize..8,
    ) {
        let mut rng = Rng::new(seed);
        let bits = 9 + rng.below(7) as u8;
        let context = Context { window_bits: bits, takeover: rng.below(2) == 0 };
        let agreement = Agreement { sending: context, receiving: context };
        let mut options = options();
        options.level = 1 + rng.below(9) as u8;
        options.message_bytes_min = rng.below(64);
        let role = *rng.pick(&ROLES);
        let engine = |role| {
            Engine::new(TestEndpoint(role), Arc::default(), Duration::ZERO)
                .with_deflate(agreement, &options, &ThreadPool)
        };
        let importer = Importer::new(Arc::default()).with_deflate(&options, &ThreadPool);
        let mut wire = Vec::new();
        let mut sender = engine(role);
        for _ in 0..1 + rng.below(6) {
            let records = *rng.pick(&[0, 1, 3, 20, 400]);
            let text = json(&mut rng, records);
            let cut = rng.below(text.len() + 1);
            match rng.below(3) {
                0 => sender.send(&mut wire, MessageKind::Text, &text).unwrap(),
                _ => {
                    let kind = MessageKind::Text;
                    sender.send_fragment(&mut wire, kind, &text[..cut], false).unwrap();
                    sender.send_ping(&mut wire, b"inside").unwrap();
                    sender.send_fragment(&mut wire, kind, &text[cut..], true).unwrap();
                }
            }
        }
        let start = || engine(other(role));
        let whole = feed(&mut start(), &wire, Cuts::Whole);
        let mut cuts: Vec<usize> = (0..moves).map(|_| rng.below(wire.len() + 1)).collect();
        cuts.sort_unstable();
        let record = feed_moving(start(), &importer, &wire, &cuts, || rng.below(2) == 0);
        prop_assert!(record == whole);
    }

    #[test]
    fn random_compressed_messages_can_be_read_after_several_moves(seed in any::<u64>()) {
        let mut rng = Rng::new(seed);
        let bits = 8 + rng.below(8) as u8;
        let context = Context { window_bits: bits, takeover: rng.below(4) > 0 };
        let mut options = options();
        options.level = 1 + rng.below(9) as u8;
        options.message_bytes_min = rng.below(64);
        let role = *rng.pick(&ROLES);
        let calls = random_calls(&mut rng);
        let engine = |role| engine_of(role, &Arc::default(), context, &options);
        let importer = Importer::new(Arc::default()).with_deflate(&options, &ThreadPool);
        let (sender, peer) = (engine(role), engine(other(role)));
        assert_peer_sees(sender, &importer, peer, &calls, |_| rng.below(2) == 0);
    }
}
