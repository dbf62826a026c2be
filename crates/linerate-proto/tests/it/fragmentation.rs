//! Messages in fragments (RFC 6455 §5.4).

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{Config, Engine, Limits, Opcode, ProtocolError, Role, engine::MessageKind};
use linerate_testkit::{Cuts, Frame, KEY, Pair, Record, Seen, TestEndpoint, feed};

use crate::situation::{ROLES, Situation, assert_fails, close_frame, engine_in, read};

#[test]
fn f13_control_frames_between_fragments_are_handled_at_once() {
    for role in ROLES {
        let wire = [
            Frame::new(0x1, "κό".as_bytes()).with_fin(false),
            Frame::new(0x9, b"ping"),
            Frame::new(0x0, &"σμ".as_bytes()[..3]).with_fin(false),
            Frame::new(0xA, b"pong"),
            Frame::new(0x0, &"σμε".as_bytes()[3..]),
            Frame::new(0x2, b"next"),
        ]
        .map(|frame| frame.to_role(role).to_bytes())
        .concat();
        let record = read(role, &wire);
        assert_eq!(
            record.seen,
            [
                Seen::Ping(b"ping".to_vec()),
                Seen::Pong(b"pong".to_vec()),
                Seen::text("κόσμε"),
                Seen::binary(b"next"),
            ]
        );
        let mask = (role == Role::Client).then_some(KEY);
        assert_eq!(
            record.output,
            Frame::new(0xA, b"ping").with_mask(mask).to_bytes()
        );
    }
}

#[test]
fn f13_a_close_between_fragments_ends_the_connection() {
    for role in ROLES {
        for situation in Situation::IN_MESSAGE {
            let wire = [Frame::new(0x8, b"\x03\xe8"), Frame::new(0x0, b"rest")]
                .map(|frame| frame.to_role(role).to_bytes())
                .concat();
            let mut engine = engine_in(situation, role);
            let record = feed(&mut engine, &wire, Cuts::Whole);
            assert_eq!(record.seen, [Seen::close(Some(1000), "")]);
            assert_eq!(record.output, close_frame(role, 1000));
        }
    }
}

#[test]
fn f14_a_continuation_without_a_start_fails_with_1002() {
    for role in ROLES {
        for (fin, payload) in [(true, ""), (true, "ab"), (false, ""), (false, "ab")] {
            let frame = Frame::new(0x0, payload.as_bytes()).with_fin(fin);
            let wire = frame.to_role(role).to_bytes();
            let error = ProtocolError::UnexpectedContinuation;
            assert_fails(role, &Situation::BETWEEN_MESSAGES, &wire, error, 1002);
        }
    }
}

#[test]
fn f15_a_new_message_inside_a_fragmented_one_fails_with_1002() {
    for role in ROLES {
        for (bits, opcode) in [(0x1, Opcode::Text), (0x2, Opcode::Binary)] {
            for (fin, payload) in [(true, ""), (true, "ab"), (false, ""), (false, "ab")] {
                let frame = Frame::new(bits, payload.as_bytes()).with_fin(fin);
                let wire = frame.to_role(role).to_bytes();
                let error = ProtocolError::ExpectedContinuation { opcode };
                assert_fails(role, &Situation::IN_MESSAGE, &wire, error, 1002);
            }
        }
    }
}

/// Feeds a first fragment and then the same continuation `count` times to an engine with `limits`.
fn continuations(role: Role, limits: Limits, payload: &[u8], count: usize) -> Record {
    let mut config = Config::default();
    config.limits = limits;
    let mut engine = Engine::new(TestEndpoint(role), Arc::new(config), Duration::ZERO);
    let first = Frame::new(0x2, b"")
        .with_fin(false)
        .to_role(role)
        .to_bytes();
    let next = Frame::new(0x0, payload).with_fin(false).to_role(role);
    let wire = [first, next.to_bytes().repeat(count)].concat();
    feed(&mut engine, &wire, Cuts::Every(4096))
}

#[test]
fn f16_endless_small_fragments_fail_with_1008_at_their_number() {
    let mut limits = Limits::default();
    limits.fragments_max = 1_000;
    for role in ROLES {
        let record = continuations(role, limits, b"x", 999);
        assert_eq!(record.seen, []);
        let record = continuations(role, limits, b"x", 1_000);
        let error = ProtocolError::TooManyFragments {
            fragments_max: 1_000,
        };
        assert_eq!(record.seen, [Seen::Error(error)]);
        assert_eq!(record.output, close_frame(role, 1008));
    }
}

#[test]
fn f16_a_message_of_one_frame_counts_as_one_fragment() {
    for (fragments_max, seen) in [
        (1, Seen::binary(b"x")),
        (
            0,
            Seen::Error(ProtocolError::TooManyFragments { fragments_max: 0 }),
        ),
    ] {
        let mut config = Config::default();
        config.limits.fragments_max = fragments_max;
        let endpoint = TestEndpoint(Role::Client);
        let mut engine = Engine::new(endpoint, Arc::new(config), Duration::ZERO);
        let record = feed(&mut engine, b"\x82\x01x", Cuts::Whole);
        assert_eq!(record.seen, [seen]);
    }
}

#[test]
fn f16_endless_small_fragments_fail_with_1009_at_their_sum() {
    let mut limits = Limits::default();
    limits.message_bytes_max = 1_000;
    for role in ROLES {
        let record = continuations(role, limits, b"x", 1_000);
        assert_eq!(record.seen, []);
        let record = continuations(role, limits, b"x", 1_001);
        let error = ProtocolError::MessageTooBig {
            bytes: 1_001,
            bytes_max: 1_000,
        };
        assert_eq!(record.seen, [Seen::Error(error)]);
        assert_eq!(record.output, close_frame(role, 1009));
    }
}

#[test]
fn f17_empty_fragments_are_legal() {
    for role in ROLES {
        for opcode in [0x1, 0x2] {
            let wire = [
                Frame::new(opcode, b"").with_fin(false),
                Frame::new(0x0, b"").with_fin(false),
                Frame::new(0x0, b"middle").with_fin(false),
                Frame::new(0x0, b"").with_fin(false),
                Frame::new(0x0, b""),
                Frame::new(opcode, b"").with_fin(false),
                Frame::new(0x0, b""),
            ]
            .map(|frame| frame.to_role(role).to_bytes())
            .concat();
            let record = read(role, &wire);
            let message: fn(&str) -> Seen = match opcode {
                0x1 => Seen::text,
                _ => |text| Seen::binary(text.as_bytes()),
            };
            assert_eq!(record.seen, [message("middle"), message("")]);
            assert_eq!(record.output, b"");
        }
    }
}

#[test]
fn f17_endless_empty_fragments_fail_with_1008_by_default() {
    for role in ROLES {
        let fragments_max = Limits::default().fragments_max;
        let record = continuations(role, Limits::default(), b"", fragments_max as usize - 1);
        assert_eq!(record.seen, []);
        let record = continuations(role, Limits::default(), b"", fragments_max as usize);
        let error = ProtocolError::TooManyFragments { fragments_max };
        assert_eq!(record.seen, [Seen::Error(error)]);
        assert_eq!(record.output, close_frame(role, 1008));
    }
}

#[test]
fn fragments_and_control_frames_arrive_however_they_are_split() {
    for read_bytes_max in [1, 3, 64] {
        let mut pair = Pair::new(Config::default()).with_read_bytes_max(read_bytes_max);
        for side in [&mut pair.client, &mut pair.server] {
            let (engine, out) = (&mut side.engine, &mut side.outbox);
            let text = "βῆτα".as_bytes();
            engine
                .send_fragment(out, MessageKind::Text, &text[..3], false)
                .unwrap();
            engine.send_ping(out, b"between").unwrap();
            engine
                .send_fragment(out, MessageKind::Text, &text[3..], false)
                .unwrap();
            engine.send_pong(out, b"unasked").unwrap();
            engine
                .send_fragment(out, MessageKind::Text, b"", true)
                .unwrap();
            engine.send_binary(out, b"\x00\xff").unwrap();
        }
        pair.drive();
        for side in [&pair.client, &pair.server] {
            assert_eq!(
                side.record.seen,
                [
                    Seen::Ping(b"between".to_vec()),
                    Seen::Pong(b"unasked".to_vec()),
                    Seen::text("βῆτα"),
                    Seen::binary(b"\x00\xff"),
                    Seen::Pong(b"between".to_vec()),
                ]
            );
        }
    }
}
