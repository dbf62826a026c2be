//! Valid and invalid compressed messages from peers (RFC 7692 §6, §7.2.2).

use flate2::{Compress, Compression, FlushCompress};
use linerate_proto::{
    Opcode, ProtocolError, Role,
    deflate::{Context, Deflate},
};
use linerate_testkit::{Frame, Record, Seen, assert_cuts_do_not_matter};

use super::{FULL, assert_fails, compressed, deflated, engine_of, feed_whole, flushed, read, wire};

/// The payload of RFC 7692 §7.2.3.1.
const HELLO: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";

fn is_invalid(error: &ProtocolError) -> bool {
    matches!(error, ProtocolError::InvalidCompression { .. })
}

fn assert_reads_hello(frames: &[Frame]) {
    assert_eq!(read(frames).seen, [Seen::text("Hello")]);
}

#[test]
fn the_examples_of_the_rfc_are_inflated() {
    // §7.2.3.1: one frame, and two.
    assert_reads_hello(&[compressed(1, HELLO)]);
    let first = compressed(1, &HELLO[..3]).with_fin(false);
    assert_reads_hello(&[first, Frame::new(0, &HELLO[3..])]);
    // §7.2.3.2: the second message refers back to the first.
    let shared = read(&[compressed(1, HELLO), compressed(1, b"\xf2\x00\x11\x00\x00")]);
    assert_eq!(shared.seen, [Seen::text("Hello"), Seen::text("Hello")]);
    // §7.2.3.3: a block without compression.
    assert_reads_hello(&[compressed(1, b"\x00\x05\x00\xfa\xffHello\x00")]);
    // §7.2.3.5: two blocks.
    assert_reads_hello(&[compressed(
        1,
        b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
    )]);
}

#[test]
fn uncompressed_messages_may_come_between_compressed_ones() {
    let record = read(&[
        compressed(1, HELLO),
        Frame::new(1, b"plain"),
        Frame::new(2, b"a").with_fin(false),
        Frame::new(0, b"b"),
        compressed(1, b"\xf2\x00\x11\x00\x00"),
    ]);
    let hello = Seen::text("Hello");
    let expected = [
        hello.clone(),
        Seen::text("plain"),
        Seen::binary(b"ab"),
        hello,
    ];
    assert_eq!(record.seen, expected);
}

#[test]
fn x03_malformed_compression_is_answered_1007() {
    for payload in [
        // A reserved block type.
        &b"\x06\x00"[..],
        b"\x07",
        // A distance that reaches before the start.
        b"\xf2\x00\x11\x00\x00",
        // A stored block whose length contradicts itself.
        b"\x00\x05\x00\xfa\xfeHello\x00",
        // Too many codes for lengths (RFC 1951 §3.2.7).
        b"\xFD\xFF\xFF\xFF",
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
    ] {
        assert_fails(&[compressed(2, payload)], is_invalid, 1007);
    }
}

#[test]
fn x03_truncated_compression_is_answered_1007() {
    let payload: Vec<u8> = (0..400_u32).flat_map(|i| (i * i).to_le_bytes()).collect();
    let whole = deflated(&payload);
    let stored = [b"\x00\x09\x00\xf6\xff".as_slice(), b"123456789\x00"].concat();
    for whole in [&whole[..], HELLO, &stored] {
        for len in 1..whole.len() - 1 {
            // One byte of the stored block is an empty message. If only the last four bytes of its
            // content are missing, the four appended bytes take their place.
            if whole == stored && [1, stored.len() - 5].contains(&len) {
                continue;
            }
            let record = feed_whole(&wire(&[compressed(2, &whole[..len])]));
            let [Seen::Error(error)] = &record.seen[..] else {
                panic!("{len} of {} bytes: {record:?}", whole.len());
            };
            assert!(is_invalid(error), "{error}");
        }
    }
}

#[test]
fn x03_garbage_after_a_message_is_answered_1007() {
    for garbage in [&b"\xff"[..], b"\x00\x01", b"garbage"] {
        let payload = [HELLO, garbage].concat();
        assert_fails(&[compressed(1, &payload)], is_invalid, 1007);
    }
}

#[test]
fn x04_a_message_that_refers_to_an_earlier_one_needs_takeover() {
    let alone = Context {
        takeover: false,
        ..FULL
    };
    let start = || {
        let engine = engine_of(
            Role::Server,
            &Default::default(),
            alone,
            &Deflate::default(),
        );
        (engine, Record::default())
    };
    let frames = wire(&[compressed(1, HELLO), compressed(1, b"\xf2\x00\x11\x00\x00")]);
    let record = assert_cuts_do_not_matter(start, &frames);
    assert_eq!(record.seen[0], Seen::text("Hello"));
    assert!(matches!(&record.seen[1], Seen::Error(error) if is_invalid(error)));
}

/// Returns a message of one match, six bytes long, from `distance` bytes back: 385 to 768.
fn match_at(distance: u16) -> Vec<u8> {
    let mut bits = vec![];
    // Codes are written from their most significant bit, numbers from their least.
    let code = |bits: &mut Vec<u16>, code: u16, len: u32| {
        bits.extend((0..len).rev().map(|at| code >> at & 1));
    };
    bits.extend([0, 1, 0]); // not final, fixed codes
    code(&mut bits, 0b000_0100, 7); // length 6
    let (symbol, base, extra) = match distance {
        385..=512 => (17, 385, 7),
        _ => (18, 513, 8),
    };
    code(&mut bits, symbol, 5);
    bits.extend((0..extra).map(|at| (distance - base) >> at & 1));
    code(&mut bits, 0, 7); // the end of the block
    bits.extend([0, 0, 0]); // the header of the empty block whose other bytes are removed
    let byte = |bits: &[u16]| {
        bits.iter()
            .rev()
            .fold(0, |byte, bit| byte << 1 | *bit as u8)
    };
    bits.chunks(8).map(byte).collect()
}

#[test]
fn x04_a_message_refers_back_exactly_as_far_as_the_window() {
    let history: Vec<u8> = (0..600_u16).map(|at| (at % 251) as u8).collect();
    let stored = [b"\x00\x58\x02\xa7\xfd", &history[..], b"\x00"].concat();
    let context = Context {
        window_bits: 9,
        takeover: true,
    };
    for distance in [385, 511, 512, 513, 600, 601] {
        let start = || {
            let options = Deflate::default();
            let engine = engine_of(Role::Server, &Default::default(), context, &options);
            (engine, Record::default())
        };
        let frames = [compressed(2, &stored), compressed(2, &match_at(distance))];
        let record = assert_cuts_do_not_matter(start, &wire(&frames));
        assert_eq!(record.seen[0], Seen::binary(&history));
        let at = history.len() - usize::from(distance).min(600);
        match &record.seen[1] {
            Seen::Error(error) => assert!(is_invalid(error) && distance > 512, "{distance}"),
            seen => assert_eq!(
                (seen, distance <= 512),
                (&Seen::binary(&history[at..][..6]), true)
            ),
        }
    }
}

#[test]
fn x07_empty_messages_are_accepted() {
    for payload in [&b""[..], b"\x00", b"\x02\x00", b"\x03\x00", b"\x03\x00\x00"] {
        assert_eq!(
            read(&[compressed(1, payload)]).seen,
            [Seen::text("")],
            "{payload:02x?}"
        );
    }
    let first = compressed(1, HELLO).with_fin(false);
    let middle = Frame::new(0, b"").with_fin(false);
    assert_reads_hello(&[first, middle, Frame::new(0, b"")]);
    let first = compressed(1, b"").with_fin(false);
    assert_reads_hello(&[first, Frame::new(0, HELLO)]);
}

#[test]
fn x08_the_bit_on_a_continuation_is_answered_1002() {
    let misplaced = |error: &ProtocolError| {
        let opcode = Opcode::Continuation;
        *error == ProtocolError::MisplacedCompression { opcode }
    };
    for first in [compressed(1, &HELLO[..3]), Frame::new(1, b"Hel")] {
        let frames = [first.with_fin(false), compressed(0, &HELLO[3..])];
        assert_fails(&frames, misplaced, 1002);
    }
}

#[test]
fn x09_the_bit_on_a_control_frame_is_answered_1002() {
    for (opcode, bits) in [(Opcode::Close, 8), (Opcode::Ping, 9), (Opcode::Pong, 10)] {
        let misplaced = ProtocolError::MisplacedCompression { opcode };
        assert_fails(&[compressed(bits, b"")], |error| *error == misplaced, 1002);
        let frames = [
            compressed(1, &HELLO[..3]).with_fin(false),
            compressed(bits, b""),
        ];
        assert_fails(&frames, |error| *error == misplaced, 1002);
    }
}

#[test]
fn other_reserved_bits_stay_invalid() {
    for rsv in [1, 2, 3, 5, 6, 7] {
        let frame = Frame::new(1, HELLO).with_rsv(rsv);
        let error = ProtocolError::ReservedBits { rsv };
        assert_fails(&[frame], |found| *found == error, 1002);
    }
}

#[test]
fn x10_final_blocks_are_accepted_anywhere() {
    // §7.2.3.4, and the same without the byte that another implementation leaves out.
    assert_reads_hello(&[compressed(1, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00")]);
    assert_reads_hello(&[compressed(1, b"\xf3\x48\xcd\xc9\xc9\x07\x00")]);
    // The next message refers back to it, and so does another block of the same message.
    let twice = read(&[
        compressed(1, b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00"),
        compressed(1, b"\xf2\x00\x11\x00\x00"),
    ]);
    assert_eq!(twice.seen, [Seen::text("Hello"), Seen::text("Hello")]);
    let both = [
        &b"\xf3\x48\xcd\xc9\xc9\x07\x00"[..],
        b"\xf2\x00\x11\x00\x00",
    ]
    .concat();
    assert_eq!(
        read(&[compressed(1, &both)]).seen,
        [Seen::text("HelloHello")]
    );
    let fragments = [
        compressed(1, &both[..7]).with_fin(false),
        Frame::new(0, &both[7..]),
    ];
    assert_eq!(read(&fragments).seen, [Seen::text("HelloHello")]);
}

#[test]
fn x10_messages_of_one_stream_each_are_accepted() {
    let payload = b"one two three four, one two three four, one two three four".repeat(50);
    let mut finished = Vec::with_capacity(8_192);
    let mut compress = Compress::new(Compression::default(), false);
    let status = compress.compress_vec(&payload, &mut finished, FlushCompress::Finish);
    assert_eq!(status.unwrap(), flate2::Status::StreamEnd);
    let frames = [compressed(2, &finished), compressed(2, &finished)];
    assert_eq!(
        read(&frames).seen,
        [Seen::binary(&payload), Seen::binary(&payload)]
    );
}

#[test]
fn x10_endless_final_blocks_are_answered_1008() {
    let blocks_max = 1_024;
    let payload = b"\x03\x00".repeat(1_024);
    assert_eq!(
        feed_whole(&wire(&[compressed(1, &payload)])).seen,
        [Seen::text("")]
    );
    let payload = b"\x03\x00".repeat(1_025);
    let record = feed_whole(&wire(&[compressed(1, &payload)]));
    assert_eq!(
        record.seen,
        [Seen::Error(ProtocolError::TooManyFinalBlocks {
            blocks_max
        })]
    );
    assert!(record.output.ends_with(&1_008_u16.to_be_bytes()));
}

#[test]
fn x11_flushes_are_accepted_anywhere_in_a_message() {
    let mut compress = Compress::new(Compression::default(), false);
    let [first, second] =
        [&b"Hello, "[..], b"Hello, world"].map(|part| flushed(&mut compress, part));
    let whole = [&first[..], &second].concat();
    let expected = [Seen::text("Hello, Hello, world")];
    // With the end removed, as it should be; with the end; and with another empty block.
    let short = &whole[..whole.len() - 4];
    for payload in [short, &whole, &[&whole, &b"\x00"[..]].concat()] {
        assert_eq!(
            read(&[compressed(1, payload)]).seen,
            expected,
            "{payload:02x?}"
        );
    }
    // A flush at the end of a fragment.
    let fragments = [
        compressed(1, &first).with_fin(false),
        Frame::new(0, &second[..second.len() - 4]),
    ];
    assert_eq!(read(&fragments).seen, expected);
}

#[test]
fn x14_control_frames_are_accepted_between_compressed_fragments() {
    let record = read(&[
        compressed(1, &HELLO[..2]).with_fin(false),
        Frame::new(9, b"a"),
        Frame::new(0, &HELLO[2..5]).with_fin(false),
        Frame::new(10, b"b"),
        Frame::new(0, &HELLO[5..]),
        Frame::new(9, b"c"),
        compressed(1, b"\xf2\x00\x11\x00\x00"),
    ]);
    let ping = |payload: &[u8]| Seen::Ping(payload.to_vec());
    let hello = Seen::text("Hello");
    let pong = Seen::Pong(b"b".to_vec());
    let expected = [ping(b"a"), pong, hello.clone(), ping(b"c"), hello];
    assert_eq!(record.seen, expected);
}

#[test]
fn x14_messages_without_takeover_are_each_complete() {
    let alone = Context {
        takeover: false,
        ..FULL
    };
    let start = || {
        let engine = engine_of(
            Role::Server,
            &Default::default(),
            alone,
            &Deflate::default(),
        );
        (engine, Record::default())
    };
    let frames = [
        compressed(1, HELLO),
        Frame::new(9, b"a"),
        compressed(1, HELLO),
    ];
    let record = assert_cuts_do_not_matter(start, &wire(&frames));
    let hello = Seen::text("Hello");
    assert_eq!(
        record.seen,
        [hello.clone(), Seen::Ping(b"a".to_vec()), hello]
    );
}

#[test]
fn u08_inflated_text_is_validated() {
    for (text, offset) in [
        (&b"a\xFFb"[..], 1),
        (b"ab\xE2\x82", 4),
        (b"\xED\xA0\x80", 1),
    ] {
        let error = ProtocolError::InvalidUtf8 { offset };
        let found = |found: &ProtocolError| matches!(found, ProtocolError::InvalidUtf8 { .. });
        assert_fails(&[compressed(1, &deflated(text))], found, 1007);
        let record = feed_whole(&wire(&[compressed(1, &deflated(text))]));
        assert_eq!(record.seen, [Seen::Error(error)]);
    }
    // A code point at every position around the boundary between two pieces of output.
    for before in (16 << 10) - 4..=16 << 10 {
        let text = "x".repeat(before) + "€" + &"y".repeat(20_000);
        let record = feed_whole(&wire(&[compressed(1, &deflated(text.as_bytes()))]));
        assert_eq!(record.seen, [Seen::text(&text)]);
    }
}
