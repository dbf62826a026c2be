//! Limits on the cost of compressed messages.

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{
    Config, Engine, ProtocolError, Role,
    deflate::{Agreement, Budget, Context, Deflate, Unpooled},
};
use linerate_testkit::{Cuts, Frame, Record, Seen, TestEndpoint, feed, feed_on};

use super::{FULL, compressed, deflated, engine_of, wire};

const BYTES_MAX: u64 = 100_000;

fn config(message_bytes_max: u64) -> Arc<Config> {
    Arc::new({
        let mut config = Config::default();
        config.limits.message_bytes_max = message_bytes_max;
        config
    })
}

fn read(frames: &[Frame], options: &Deflate, cuts: Cuts) -> Record {
    let mut engine = engine_of(Role::Server, &config(BYTES_MAX), FULL, options);
    feed(&mut engine, &wire(frames), cuts)
}

fn too_big() -> Seen {
    Seen::Error(ProtocolError::MessageTooBig {
        bytes: BYTES_MAX + 1,
        bytes_max: BYTES_MAX,
    })
}

#[test]
fn x01_a_bomb_in_one_frame_is_answered_1009() {
    let bomb = deflated(&vec![0; 50 << 20]);
    assert!(bomb.len() < 60_000, "{}", bomb.len());
    for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Every(1_400)] {
        let record = read(&[compressed(2, &bomb)], &Deflate::default(), cuts);
        assert_eq!(record.seen, [too_big()]);
        assert!(record.output.ends_with(&1_009_u16.to_be_bytes()));
    }
}

#[test]
fn x02_a_message_of_exactly_the_limit_is_accepted() {
    for (bytes, fits) in [(BYTES_MAX, true), (BYTES_MAX + 1, false)] {
        let payload = vec![7; bytes as usize];
        for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Every(17)] {
            let frame = compressed(2, &deflated(&payload));
            let record = read(&[frame], &Deflate::default(), cuts);
            match fits {
                true => assert_eq!(record.seen, [Seen::binary(&payload)]),
                false => assert_eq!(record.seen, [too_big()]),
            }
        }
    }
}

#[test]
fn x02_a_bomb_over_fragments_is_answered_1009() {
    let bomb = deflated(&vec![0; 200_000]);
    let frames: Vec<Frame> = (bomb.chunks(7).enumerate())
        .map(|(at, part)| match at {
            0 => compressed(2, part).with_fin(false),
            _ => Frame::new(0, part).with_fin(false),
        })
        .collect();
    for cuts in [Cuts::Whole, Cuts::Every(1)] {
        assert_eq!(read(&frames, &Deflate::default(), cuts).seen, [too_big()]);
    }
}

#[test]
fn x02_a_bomb_that_repeats_earlier_messages_is_answered_1009() {
    // The second message is short because it refers back to the first.
    let mut compress = flate2::Compress::new(flate2::Compression::best(), false);
    let mut rng = linerate_testkit::Rng::new(2);
    let noise: Vec<u8> = (0..30_000).map(|_| rng.below(256) as u8).collect();
    let frames = [noise.clone(), noise.repeat(7)].map(|message| {
        let mut payload = super::flushed(&mut compress, &message);
        payload.truncate(payload.len() - 4);
        compressed(2, &payload)
    });
    let record = read(&frames, &Deflate::default(), Cuts::Whole);
    assert_eq!(record.seen, [Seen::binary(&noise), too_big()]);
}

#[test]
fn x02_incompressible_messages_are_bounded_on_the_wire() {
    // Empty blocks inflate to nothing, however many there are.
    let blocks = b"\x00\x00\x00\xff\xff".repeat(30_000);
    let frames = [compressed(2, &blocks)];
    let bytes_max = BYTES_MAX + BYTES_MAX / 8 + 64;
    let bytes = blocks.len() as u64;
    let record = read(&frames, &Deflate::default(), Cuts::Whole);
    let error = ProtocolError::MessageTooBig { bytes, bytes_max };
    assert_eq!(record.seen, [Seen::Error(error)]);
    // Noise of exactly the limit becomes longer when it is compressed, but is accepted.
    let mut rng = linerate_testkit::Rng::new(1);
    let noise: Vec<u8> = (0..BYTES_MAX).map(|_| rng.below(256) as u8).collect();
    let frame = compressed(2, &deflated(&noise));
    let record = read(&[frame], &Deflate::default(), Cuts::Whole);
    assert_eq!(record.seen, [Seen::binary(&noise)]);
}

#[test]
fn x02_a_requested_ratio_is_enforced() {
    let frame = [compressed(2, &deflated(&[0; 90_000]))];
    let mut options = Deflate::default();
    options.ratio_max = Some(100);
    let record = read(&frame, &options, Cuts::Whole);
    let [Seen::Error(error @ ProtocolError::InflateRatio { ratio_max: 100, .. })] = record.seen[..]
    else {
        panic!("{record:?}");
    };
    assert_eq!(error.close_code().as_u16(), 1009);
    let record = read(&frame, &Deflate::default(), Cuts::Whole);
    assert_eq!(record.seen, [Seen::binary(&[0; 90_000])]);
    // The ratio of short messages is not checked.
    let record = read(
        &[compressed(2, &deflated(&[0; 60_000]))],
        &options,
        Cuts::Whole,
    );
    assert_eq!(record.seen, [Seen::binary(&[0; 60_000])]);
}

#[test]
fn x12_unfinished_messages_stay_within_the_budget() {
    static BUDGET: Budget = Budget::new(120 << 10);
    let mut options = Deflate::default();
    options.budget = &BUDGET;
    let context = Context {
        window_bits: 12,
        takeover: true,
    };
    let begin = wire(&[compressed(2, b"\x00").with_fin(false)]);
    let start = || engine_of(Role::Server, &config(BYTES_MAX), context, &options);
    let mut engines = [start(), start(), start()];
    let [first, second, third] = engines
        .each_mut()
        .map(|engine| feed(engine, &begin, Cuts::Whole));
    assert!(first.seen.is_empty() && second.seen.is_empty());
    let error = ProtocolError::CompressionMemory {
        bytes: 49_152,
        bytes_max: 120 << 10,
    };
    assert_eq!(third.seen, [Seen::Error(error)]);
    assert_eq!(error.close_code().as_u16(), 1013);
    assert_eq!(BUDGET.used(), 3 * 4_096 + 2 * 49_152);
    // The end of a message releases its memory, and so does the end of a connection.
    let end = wire(&[Frame::new(0, b"")]);
    let first = feed_on(first, &mut engines[0], &end, Cuts::Whole);
    assert_eq!(first.seen, [Seen::binary(b"")]);
    assert_eq!(BUDGET.used(), 3 * 4_096 + 49_152);
    drop(engines);
    assert_eq!(BUDGET.used(), 0);
}

#[test]
fn x12_idle_connections_release_their_windows_when_memory_is_tight() {
    static BUDGET: Budget = Budget::new(20 << 10);
    let mut options = Deflate::default();
    options.budget = &BUDGET;
    let context = Context {
        window_bits: 12,
        takeover: true,
    };
    let config = config(BYTES_MAX);
    let agreement = Agreement {
        sending: context,
        receiving: context,
    };
    // A pool would keep a compressor that knows what was sent.
    let server = Engine::new(TestEndpoint(Role::Server), config.clone(), Duration::ZERO);
    let mut server = server.with_deflate(agreement, &options, &Unpooled);
    let mut client = engine_of(Role::Client, &config, context, &options);
    let text = "All work and no play makes Jack a dull boy. ".repeat(100);
    let mut sent = Vec::new();
    server.send_text(&mut sent, &text).unwrap();
    client.send_text(&mut Vec::new(), &text).unwrap();
    let first_bytes = sent.len();
    assert_eq!(BUDGET.used(), 4 * 4_096);
    let mut time = Duration::ZERO;
    for used in [4 * 4_096, 3 * 4_096] {
        // A Ping is due twice, and is answered.
        time = server.poll_timeout().unwrap().max(time);
        server.handle_timeout(time).unwrap();
        server
            .handle_input(&mut wire(&[Frame::new(10, b"")]), time)
            .next();
        assert_eq!(BUDGET.used(), used);
        time += Duration::from_secs(1);
    }
    // Without the window the message is as long as the first one, and the peer can still read it.
    server.send_text(&mut sent, &text).unwrap();
    assert!(
        sent.len() >= 2 * first_bytes - 8,
        "{first_bytes} {}",
        sent.len()
    );
    let seen = feed(&mut client, &sent, Cuts::Whole).seen;
    assert_eq!(seen, [Seen::text(&text), Seen::text(&text)]);
}
