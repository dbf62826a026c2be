//! Payload lengths: their form, limits and cost (RFC 6455 §5.2, §10.4).

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{Config, Engine, Event, Limits, ProtocolError, Role};
use linerate_testkit::{
    Cuts, Frame, LengthForm, Record, Seen, TestEndpoint, assert_cuts_do_not_matter, feed,
};

use crate::situation::{ROLES, Situation, assert_fails, close_frame};

fn limited(role: Role, limits: Limits) -> Engine<TestEndpoint> {
    let mut config = Config::default();
    config.limits = limits;
    Engine::new(TestEndpoint(role), Arc::new(config), Duration::ZERO)
}

fn read(engine: impl Fn() -> Engine<TestEndpoint>, wire: &[u8]) -> Record {
    assert_cuts_do_not_matter(|| (engine(), Record::default()), wire)
}

fn message_limit(message_bytes_max: u64) -> Limits {
    let mut limits = Limits::default();
    limits.message_bytes_max = message_bytes_max;
    limits
}

fn failed(role: Role, error: ProtocolError, code: u16) -> Record {
    Record {
        seen: vec![Seen::Error(error)],
        unfinished: None,
        output: close_frame(role, code),
    }
}

#[test]
fn f06_lengths_in_a_longer_form_than_needed_fail_with_1002() {
    for role in ROLES {
        for (form, bytes) in [
            (LengthForm::Bits16, 0),
            (LengthForm::Bits16, 125),
            (LengthForm::Bits64, 0),
            (LengthForm::Bits64, 125),
            (LengthForm::Bits64, 126),
            (LengthForm::Bits64, 65_535),
        ] {
            let frame = Frame::new(0x2, b"").with_length_form(form);
            let wire = frame.with_claimed_bytes(bytes).to_role(role).to_bytes();
            let error = ProtocolError::NonMinimalLength { bytes };
            assert_fails(role, &Situation::BETWEEN_MESSAGES, &wire, error, 1002);
        }
    }
}

#[test]
fn f07_lengths_above_63_bits_fail_with_1002() {
    for role in ROLES {
        for bytes in [1 << 63, (1 << 63) + 1, u64::MAX - 14, u64::MAX] {
            let frame = Frame::new(0x0, b"").with_claimed_bytes(bytes);
            let wire = frame.to_role(role).to_bytes();
            let error = ProtocolError::LengthOverflow { bytes };
            assert_fails(role, &Situation::IN_MESSAGE, &wire, error, 1002);
        }
    }
}

#[test]
fn f08_a_message_of_exactly_the_limit_is_taken_and_one_byte_more_fails_with_1009() {
    for role in ROLES {
        for bytes in [0, 1, 125, 126, 300] {
            let payload = vec![b'x'; bytes];
            let wire = Frame::new(0x2, &payload).to_role(role).to_bytes();
            let record = read(|| limited(role, message_limit(bytes as u64)), &wire);
            assert_eq!(record.seen, [Seen::binary(&payload)]);

            let over = [payload, vec![b'x']].concat();
            let wire = Frame::new(0x2, &over).to_role(role).to_bytes();
            let record = read(|| limited(role, message_limit(bytes as u64)), &wire);
            let error = ProtocolError::MessageTooBig {
                bytes: bytes as u64 + 1,
                bytes_max: bytes as u64,
            };
            assert_eq!(record, failed(role, error, 1009));
        }
    }
}

#[test]
fn f08_the_fragments_of_a_message_are_added_up() {
    for role in ROLES {
        let fragment = |opcode, bytes: &[u8], fin| {
            let frame = Frame::new(opcode, bytes).with_fin(fin);
            frame.to_role(role).to_bytes()
        };
        let start = [fragment(0x2, b"abc", false), fragment(0x0, b"", false)].concat();
        let engine = || limited(role, message_limit(8));

        let exact = [&start[..], &fragment(0x0, b"defgh", true)].concat();
        let record = read(engine, &exact);
        assert_eq!(record.seen, [Seen::binary(b"abcdefgh")]);

        let over = [&start[..], &fragment(0x0, b"defghi", true)].concat();
        let record = read(engine, &over);
        let error = ProtocolError::MessageTooBig {
            bytes: 9,
            bytes_max: 8,
        };
        assert_eq!(record, failed(role, error, 1009));
    }
}

#[test]
fn f08_sums_near_the_largest_numbers_do_not_wrap() {
    for role in ROLES {
        let first = Frame::new(0x2, b"abc").with_fin(false).to_role(role);
        for bytes in [i64::MAX as u64 - 4, i64::MAX as u64] {
            let huge = Frame::new(0x0, b"d").with_claimed_bytes(bytes);
            let wire = [first.to_bytes(), huge.to_role(role).to_bytes()].concat();
            let mut engine = limited(role, message_limit(u64::MAX));
            let record = feed(&mut engine, &wire, Cuts::Every(1));
            let (_, unfinished) = record.unfinished.expect("the frame is not at its end");
            assert_eq!(unfinished, b"abcd");
            assert_eq!(record.seen, []);

            let mut engine = limited(role, message_limit(bytes + 2));
            let record = feed(&mut engine, &wire, Cuts::Every(1));
            let error = ProtocolError::MessageTooBig {
                bytes: bytes + 3,
                bytes_max: bytes + 2,
            };
            assert_eq!(record, failed(role, error, 1009));
        }
    }
}

#[test]
fn f08_a_frame_of_exactly_the_limit_is_accepted_and_one_byte_more_fails_with_1009() {
    let mut limits = Limits::default();
    limits.frame_bytes_max = 4;
    for role in ROLES {
        let frames = |bytes| {
            let fragment = Frame::new(0x1, b"abcd").with_fin(false).to_role(role);
            let last = Frame::new(0x0, bytes).to_role(role);
            [fragment.to_bytes(), last.to_bytes()].concat()
        };
        let record = read(|| limited(role, limits), &frames(b"efgh"));
        assert_eq!(record.seen, [Seen::text("abcdefgh")]);
        let record = read(|| limited(role, limits), &frames(b"efghi"));
        let error = ProtocolError::FrameTooBig {
            bytes: 5,
            bytes_max: 4,
        };
        assert_eq!(record, failed(role, error, 1009));
    }
}

#[test]
fn f08_the_limit_on_frames_applies_to_messages_of_one_frame() {
    let mut limits = Limits::default();
    limits.frame_bytes_max = 4;
    for role in ROLES {
        let frame = |bytes| Frame::new(0x1, bytes).to_role(role).to_bytes();
        let record = read(|| limited(role, limits), &frame(b"abcd"));
        assert_eq!(record.seen, [Seen::text("abcd")]);
        let record = read(|| limited(role, limits), &frame(b"abcde"));
        let error = ProtocolError::FrameTooBig {
            bytes: 5,
            bytes_max: 4,
        };
        assert_eq!(record, failed(role, error, 1009));
    }
}

/// The tests in `no_alloc.rs` show that the claimed length causes no allocation.
#[test]
fn f09_a_slow_frame_is_lent_byte_by_byte_and_not_buffered() {
    for role in ROLES {
        let frame = Frame::new(0x2, &[7; 100]).with_claimed_bytes(60 << 20);
        let mut wire = frame.to_role(role).to_bytes();
        let header_bytes = wire.len() - 100;
        let mut engine = limited(role, message_limit(64 << 20));
        for (at, byte) in wire.chunks_mut(1).enumerate() {
            let mut events = engine.handle_input(byte, Duration::ZERO);
            match events.next() {
                None => assert!(at < header_bytes),
                Some(Ok(Event::Chunk(chunk))) => {
                    assert_eq!(chunk.bytes, [7]);
                    assert_eq!(chunk.begins, at == header_bytes);
                    assert!(!chunk.ends);
                }
                Some(other) => panic!("{other:?} at byte {at}"),
            }
        }
    }
}

#[test]
fn f10_a_claim_over_the_limit_fails_with_1009_before_any_payload() {
    for role in ROLES {
        for bytes in [(1 << 20) + 1, i64::MAX as u64] {
            for opcode in [0x1, 0x2] {
                let header = Frame::new(opcode, b"").with_claimed_bytes(bytes);
                let wire = header.to_role(role).to_bytes();
                let error = ProtocolError::MessageTooBig {
                    bytes,
                    bytes_max: 1 << 20,
                };
                assert_fails(role, &Situation::BETWEEN_MESSAGES, &wire, error, 1009);
            }
        }
    }
}
