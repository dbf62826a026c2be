//! Round trips: messages that one engine compresses, another inflates.

use std::sync::Arc;

use linerate_proto::{
    Role, SendError,
    deflate::{Context, Deflate},
    engine::MessageKind,
};
use linerate_testkit::{Cuts, Rng, Seen, TestEndpoint, feed};
use proptest::prelude::*;

use super::{FULL, compressed, deflated, engine, engine_of, wire};

type Engine = linerate_proto::Engine<TestEndpoint>;

/// Generates a message of one of the kinds that compression treats differently.
fn payload(seed: u64, bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    match seed % 4 {
        0 => vec![seed as u8; bytes],
        1 => (0..bytes).map(|_| rng.below(256) as u8).collect(),
        2 => b"{\"symbol\":\"ABC\",\"price\":123.45}"
            .iter()
            .copied()
            .cycle()
            .take(bytes)
            .collect(),
        _ => (0..bytes).map(|_| b'a' + rng.below(5) as u8).collect(),
    }
}

fn pair(sender: Role, context: Context, options: &Deflate) -> (Engine, Engine) {
    let receiver = match sender {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    };
    let start = |role| engine_of(role, &Arc::default(), context, options);
    (start(sender), start(receiver))
}

#[derive(Clone, Debug)]
struct Sent {
    seed: u64,
    bytes: usize,
    fragments: usize,
    is_secret: bool,
}

fn sent() -> impl Strategy<Value = Sent> {
    let bytes = prop_oneof![0_usize..300, 0_usize..5_000, 30_000_usize..70_000];
    (any::<u64>(), bytes, 1_usize..4, 0..10).prop_map(|(seed, bytes, fragments, secret)| Sent {
        // Use few seeds, so that messages repeat each other.
        seed: seed % 6,
        bytes,
        fragments,
        is_secret: secret == 0,
    })
}

fn send(engine: &mut Engine, out: &mut Vec<u8>, message: &Sent) -> Seen {
    let bytes = payload(message.seed, message.bytes);
    if message.is_secret {
        engine
            .send_uncompressed(out, MessageKind::Binary, &bytes)
            .expect("the connection is open");
    } else if message.fragments == 1 {
        engine
            .send_binary(out, &bytes)
            .expect("the connection is open");
    } else {
        let size = bytes.len() / message.fragments + 1;
        for part in bytes.chunks(size) {
            engine
                .send_fragment(out, MessageKind::Binary, part, false)
                .expect("the connection is open");
        }
        engine
            .send_fragment(out, MessageKind::Binary, b"", true)
            .expect("the connection is open");
    }
    Seen::binary(&bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn messages_arrive_unchanged(
        messages in prop::collection::vec(sent(), 1..8),
        window_bits in 8_u8..=15,
        takeover: bool,
        level in 1_u8..=9,
        from_client: bool,
        seed: u64,
    ) {
        let mut options = Deflate::default();
options.level = level;
        let sender = if from_client { Role::Client } else { Role::Server };
        let context = Context { window_bits, takeover };
        let (mut sender, mut receiver) = pair(sender, context, &options);
        let mut wire = Vec::new();
        let expected: Vec<_> =
            messages.iter().map(|message| send(&mut sender, &mut wire, message)).collect();
        let cuts = if seed % 3 == 0 { Cuts::Whole } else { Cuts::Random(seed) };
        let record = feed(&mut receiver, &wire, cuts);
        prop_assert!(record.seen == expected, "not what was sent");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn x03_damaged_messages_give_the_same_result_however_they_are_split(
        message in sent(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        window_bits in 8_u8..=15,
        takeover: bool,
        seed: u64,
    ) {
        let mut payload = deflated(&payload(message.seed, message.bytes % 3_000));
        for (at, byte) in damage {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        let context = Context { window_bits, takeover };
        let wire = wire(&[compressed(2, &payload), compressed(1, &payload)]);
        let read = |cuts| {
            let options = Deflate::default();
            let mut server = engine_of(Role::Server, &Arc::default(), context, &options);
            feed(&mut server, &wire, cuts)
        };
        let whole = read(Cuts::Whole);
        for cuts in [Cuts::Every(1), Cuts::Random(seed)] {
            prop_assert!(read(cuts) == whole, "{:?}", cuts);
        }
    }
}

/// Inflates one byte at a time, so that nothing beyond the window can be reached.
fn inflate_strictly(window_bits: u8, history: &[u8], wire: &[u8]) -> Vec<u8> {
    let mut inflate = zlib_rs::Inflate::new(false, window_bits);
    if !history.is_empty() {
        inflate
            .set_dictionary(history)
            .expect("a raw stream accepts a dictionary");
    }
    let (mut at, mut out) = (0, Vec::new());
    loop {
        let (before, mut byte) = (inflate.total_in(), [0]);
        let written = inflate.total_out();
        let flush = zlib_rs::InflateFlush::NoFlush;
        inflate
            .decompress(&wire[at..], &mut byte, flush)
            .expect("within the window");
        at += (inflate.total_in() - before) as usize;
        if inflate.total_out() == written {
            return out;
        }
        out.push(byte[0]);
    }
}

#[test]
fn x05_no_message_refers_back_beyond_its_window() {
    for window_bits in 8..=15 {
        for level in 1..=9 {
            let mut options = Deflate::default();
            options.level = level;
            let context = Context {
                window_bits,
                takeover: true,
            };
            let mut server = engine_of(Role::Server, &Arc::default(), context, &options);
            let mut history: Vec<u8> = Vec::new();
            let mut rng = Rng::new(level.into());
            for _ in 0..12 {
                // A period just within or beyond each window leads to the longest distances.
                let near = ((1 << window_bits) + rng.below(600))
                    .saturating_sub(300)
                    .max(20);
                let period = payload(3, near);
                let message = period.repeat(2 + 2_000 / near);
                let mut out = Vec::new();
                server.send_binary(&mut out, &message).unwrap();
                let (header, start) = linerate_proto::Header::decode(&out).unwrap().unwrap();
                assert_eq!(header.rsv, 4);
                let wire = [&out[start..], b"\x00\x00\xff\xff"].concat();
                let window = &history[history.len().saturating_sub(1 << window_bits)..];
                let inflated = inflate_strictly(window_bits, window, &wire);
                assert!(inflated == message, "{window_bits} bits, level {level}");
                history.extend(message);
            }
        }
    }
}

#[test]
fn an_independent_implementation_inflates_what_we_send() {
    let mut server = engine(Role::Server);
    let mut inflate = flate2::Decompress::new(false);
    for seed in 0..40 {
        let message = payload(seed, 100 + seed as usize * 97);
        let mut out = Vec::new();
        server.send_binary(&mut out, &message).unwrap();
        let (header, start) = linerate_proto::Header::decode(&out).unwrap().unwrap();
        if header.rsv == 0 {
            assert_eq!(out[start..], message);
            continue;
        }
        let wire = [&out[start..], b"\x00\x00\xff\xff"].concat();
        let mut inflated = Vec::with_capacity(message.len() + 1);
        let flush = flate2::FlushDecompress::Sync;
        inflate.decompress_vec(&wire, &mut inflated, flush).unwrap();
        assert!(inflated == message, "{seed}");
    }
}

#[test]
fn takeover_shortens_the_second_of_two_equal_messages() {
    let text =
        r#"{"id":9182,"symbol":"ABC","price":123.45,"size":100,"side":"buy","venue":"XNAS"}"#;
    for (takeover, short) in [(true, true), (false, false)] {
        let context = Context { takeover, ..FULL };
        let (mut server, mut client) = pair(Role::Server, context, &Deflate::default());
        let (mut first, mut second) = (Vec::new(), Vec::new());
        server.send_text(&mut first, text).unwrap();
        server.send_text(&mut second, text).unwrap();
        assert_eq!(second.len() < 20, short, "{} {}", first.len(), second.len());
        let seen = feed(&mut client, &[first, second].concat(), Cuts::Every(3)).seen;
        assert_eq!(seen, [Seen::text(text), Seen::text(text)]);
    }
}

#[test]
fn short_and_random_messages_are_sent_uncompressed() {
    let mut server = engine(Role::Server);
    let mut out = Vec::new();
    server.send_text(&mut out, "Spam").unwrap();
    assert_eq!(out, b"\x81\x04Spam");
    for bytes in [300, 5_000, 100_000] {
        out.clear();
        let noise = payload(1, bytes);
        server.send_binary(&mut out, &noise).unwrap();
        assert_eq!(out[0], 0x82);
        assert!(out.ends_with(&noise));
    }
}

#[test]
fn an_incompressible_message_is_sent_uncompressed_and_the_next_one_can_be_read() {
    let mut options = Deflate::default();
    options.message_bytes_min = 0;
    let (mut server, mut client) = pair(Role::Server, FULL, &options);
    let mut out = Vec::new();
    let mut expected = Vec::new();
    let mut plain = 0;
    for round in 0..50 {
        // Too short for an estimate, and too random to shrink.
        let noise = payload(1 + 4 * round, 60);
        let start = out.len();
        server.send_binary(&mut out, &noise).unwrap();
        plain += usize::from(out[start] == 0x82);
        server
            .send_text(&mut out, "Hello, Hello, Hello, Hello")
            .unwrap();
        expected.extend([
            Seen::binary(&noise),
            Seen::text("Hello, Hello, Hello, Hello"),
        ]);
    }
    assert!(plain > 0);
    assert_eq!(feed(&mut client, &out, Cuts::Random(5)).seen, expected);
}

#[test]
fn x13_a_secret_is_sent_uncompressed_and_leaves_no_trace_in_the_window() {
    let (mut server, mut client) = pair(Role::Server, FULL, &Deflate::default());
    let secret = payload(3, 400);
    let (mut wire, mut probe) = (Vec::new(), Vec::new());
    server
        .send_uncompressed(&mut wire, MessageKind::Binary, &secret)
        .unwrap();
    assert_eq!(wire[0], 0x82);
    assert!(wire.ends_with(&secret));
    server.send_binary(&mut probe, &secret).unwrap();
    let mut fresh = Vec::new();
    engine(Role::Server)
        .send_binary(&mut fresh, &secret)
        .unwrap();
    assert_eq!(
        probe.len(),
        fresh.len(),
        "the guess tells nothing of the secret"
    );
    wire.extend(probe);
    let seen = feed(&mut client, &wire, Cuts::Whole).seen;
    assert_eq!(seen, [Seen::binary(&secret), Seen::binary(&secret)]);
}

#[test]
fn the_first_fragment_decides_about_compression() {
    let (mut server, mut client) = pair(Role::Server, FULL, &Deflate::default());
    let mut out = Vec::new();
    let text = "to be or not to be ".repeat(10);
    server
        .send_fragment(&mut out, MessageKind::Text, text.as_bytes(), false)
        .unwrap();
    assert_eq!(out[0], 0x41);
    let in_place = server.send_fragment_prefix(&mut out, MessageKind::Text, 4, true);
    assert_eq!(in_place, Err(SendError::MessageCompressed));
    server
        .send_fragment(&mut out, MessageKind::Text, b"or", false)
        .unwrap();
    server
        .send_fragment(&mut out, MessageKind::Text, b"", true)
        .unwrap();
    server
        .send_fragment(&mut out, MessageKind::Text, b"short", false)
        .unwrap();
    server
        .send_fragment(&mut out, MessageKind::Text, text.as_bytes(), true)
        .unwrap();
    let seen = feed(&mut client, &out, Cuts::Every(1)).seen;
    let (first, second) = (text.clone() + "or", "short".to_owned() + &text);
    assert_eq!(seen, [Seen::text(&first), Seen::text(&second)]);
}

#[test]
fn an_engine_reports_what_it_compresses() {
    let context = Context {
        window_bits: 11,
        takeover: false,
    };
    let options = Deflate::default();
    let compressing = engine_of(Role::Server, &Arc::default(), context, &options);
    assert_eq!(compressing.compression(), Some(context));
    assert!(compressing.would_deflate(&[b'a'; 64]));
    assert!(!compressing.would_deflate(&[b'a'; 63]));
    let plain = linerate_proto::Engine::new(
        TestEndpoint(Role::Server),
        Arc::default(),
        Default::default(),
    );
    assert_eq!(plain.compression(), None);
    assert!(!plain.would_deflate(&[b'a'; 64]));
}
