//! Messages that are compressed once and sent to many connections.

use std::sync::Arc;

use linerate_proto::{
    Role,
    deflate::{Context, Deflate, Prepared, ThreadPool},
    engine::MessageKind,
};
use linerate_testkit::{Cuts, Rng, Seen, feed};

use super::engine_of;

fn message(rng: &mut Rng) -> String {
    let words = [
        "alpha ",
        "beta ",
        "gamma ",
        "delta ",
        "epsilon ",
        "price=12.5 ",
    ];
    (0..rng.below(400))
        .map(|_| words[rng.below(words.len())])
        .collect()
}

#[test]
fn a_prepared_message_may_be_sent_between_others_with_any_window() {
    let mut rng = Rng::new(7);
    for window_bits in 8..=15 {
        for takeover in [false, true] {
            let context = Context {
                window_bits,
                takeover,
            };
            let options = Deflate::default();
            let mut server = engine_of(Role::Server, &Arc::default(), context, &options);
            let mut client = engine_of(Role::Client, &Arc::default(), context, &options);
            let (mut out, mut expected) = (Vec::new(), Vec::new());
            for _ in 0..40 {
                let text = message(&mut rng);
                expected.push(Seen::text(&text));
                if rng.below(2) == 0 {
                    server.send_text(&mut out, &text).unwrap();
                    continue;
                }
                let prepared = Prepared::new(MessageKind::Text, text, &options, &ThreadPool);
                server.send_prepared(&mut out, &prepared).unwrap();
            }
            assert_eq!(feed(&mut client, &out, Cuts::Random(1)).seen, expected);
        }
    }
}

#[test]
fn later_messages_refer_back_to_a_prepared_one() {
    let options = Deflate::default();
    let context = Context {
        window_bits: 12,
        takeover: true,
    };
    let mut server = engine_of(Role::Server, &Arc::default(), context, &options);
    let mut rng = Rng::new(3);
    // No byte occurs twice in a row, so only the repetition of the message can be compressed.
    let text: String = (0..900)
        .map(|_| (b'a' + rng.below(26) as u8) as char)
        .collect();
    let prepared = Prepared::new(MessageKind::Text, text.clone(), &options, &ThreadPool);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    server.send_prepared(&mut first, &prepared).unwrap();
    server.send_text(&mut second, &text).unwrap();
    assert!(
        first.len() > 500 && second.len() < 30,
        "{} {}",
        first.len(),
        second.len()
    );
}

#[test]
fn without_compression_a_prepared_message_is_sent_uncompressed() {
    let options = Deflate::default();
    let endpoint = linerate_testkit::TestEndpoint(Role::Server);
    let mut server = linerate_proto::Engine::new(endpoint, Arc::default(), Default::default());
    let text = "spam ".repeat(20);
    let prepared = Prepared::new(MessageKind::Text, text.clone(), &options, &ThreadPool);
    let mut out = Vec::new();
    server.send_prepared(&mut out, &prepared).unwrap();
    assert_eq!(out[..2], [0x81, 100]);
    assert_eq!(&out[2..], text.as_bytes());
    let short = Prepared::new(MessageKind::Text, "spam", &options, &ThreadPool);
    assert!(prepared.is_compressed() && !short.is_compressed());
    let mut server = super::engine(Role::Server);
    out.clear();
    server.send_prepared(&mut out, &short).unwrap();
    assert_eq!(out, b"\x81\x04spam");
}

#[test]
fn a_narrow_window_accepts_messages_up_to_its_length() {
    let mut options = Deflate::default();
    options.window_bits = 12;
    let is_sent_compressed = |window_bits, bytes: usize| {
        let context = Context {
            window_bits,
            takeover: false,
        };
        let mut server = engine_of(Role::Server, &Arc::default(), context, &options);
        let text = "spam ".repeat(bytes).split_off(4 * bytes);
        let prepared = Prepared::new(MessageKind::Text, text, &options, &ThreadPool);
        assert!(prepared.is_compressed());
        let mut out = Vec::new();
        server.send_prepared(&mut out, &prepared).unwrap();
        out[0] == 0xC1
    };
    assert!(is_sent_compressed(9, 512) && !is_sent_compressed(9, 513));
    assert!(is_sent_compressed(11, 2_048) && !is_sent_compressed(11, 2_049));
    assert!(is_sent_compressed(12, 5_000) && is_sent_compressed(15, 5_000));
}
