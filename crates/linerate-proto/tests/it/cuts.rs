//! Events and answers do not depend on how the bytes are split into reads.

use core::time::Duration;
use std::sync::Arc;

use linerate_proto::{Engine, Role};
use linerate_testkit::{Cuts, Frame, KEY, LengthForm, Rng, Seen, TestEndpoint, feed};
use proptest::prelude::*;

use crate::situation::{ROLES, Situation, engine_in, read};

/// The examples of RFC 6455 §5.7.
#[test]
fn f24_the_examples_of_the_rfc_read_the_same_in_any_pieces() {
    let seen = |role, wire: &[u8]| {
        let record = read(role, wire);
        assert_eq!(record.unfinished, None);
        (record.seen, record.output)
    };
    let hello = vec![Seen::text("Hello")];
    assert_eq!(
        seen(Role::Client, b"\x81\x05\x48\x65\x6c\x6c\x6f"),
        (hello.clone(), vec![])
    );
    assert_eq!(
        seen(
            Role::Server,
            b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
        ),
        (hello.clone(), vec![])
    );
    assert_eq!(
        seen(Role::Client, b"\x01\x03\x48\x65\x6c\x80\x02\x6c\x6f"),
        (hello, vec![])
    );
    assert_eq!(
        seen(Role::Client, b"\x89\x05\x48\x65\x6c\x6c\x6f"),
        (
            vec![Seen::Ping(b"Hello".to_vec())],
            b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58".to_vec()
        )
    );
    assert_eq!(
        seen(
            Role::Server,
            b"\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
        ),
        (vec![Seen::Pong(b"Hello".to_vec())], vec![])
    );
    let binary: Vec<u8> = (0..=255).collect();
    assert_eq!(
        seen(Role::Client, &[b"\x82\x7e\x01\x00", &binary[..]].concat()),
        (vec![Seen::binary(&binary)], vec![])
    );
}

/// The last example of §5.7, which is too long to test every split.
#[test]
fn f24_a_frame_of_64_kib_reads_the_same_in_any_pieces() {
    for role in ROLES {
        let payload = Rng::new(24).bytes(65_536);
        let frame = Frame::new(0x2, &payload).to_role(role).to_bytes();
        assert_eq!(frame[1] & 0x7F, 127);
        for cuts in (0..20)
            .map(Cuts::At)
            .chain([1, 2, 1_400, 4_096, 65_535].map(Cuts::Every))
            .chain([Cuts::Whole, Cuts::Random(1)])
        {
            let record = feed(&mut engine_in(Situation::Idle, role), &frame, cuts);
            assert_eq!(record.seen, [Seen::binary(&payload)], "{cuts:?}");
        }
    }
}

#[test]
fn f24_many_frames_in_one_read_are_all_seen() {
    for role in ROLES {
        let mut wire = Vec::new();
        let mut expected = Vec::new();
        for i in 0..500 {
            let text = "x".repeat(i % 140);
            wire.extend(Frame::new(0x1, text.as_bytes()).to_role(role).to_bytes());
            expected.push(Seen::text(&text));
        }
        for cuts in [Cuts::Whole, Cuts::Every(1), Cuts::Every(1_400)] {
            let record = feed(&mut engine_in(Situation::Idle, role), &wire, cuts);
            assert_eq!(record.seen, expected, "{cuts:?}");
        }
    }
}

#[test]
fn f24_a_close_split_anywhere_is_one_close() {
    for role in ROLES {
        let wire = Frame::new(0x8, b"\x03\xe8split me")
            .to_role(role)
            .to_bytes();
        let record = read(role, &wire);
        assert_eq!(record.seen, [Seen::close(Some(1000), "split me")]);
    }
}

#[test]
fn bytes_passed_again_after_a_pause_are_read_once() {
    let mut input = b"\x81\x01a\x81\x01b\x81\x01c".to_vec();
    let mut engine = engine_in(Situation::Idle, Role::Client);
    let mut at = 0;
    let mut seen = Vec::new();
    while at < input.len() {
        let mut events = engine.handle_input(&mut input[at..], Duration::ZERO);
        seen.push(format!("{:?}", events.next()));
        at += events.consumed();
    }
    let text = |letter| format!("Some(Ok(Text({letter:?})))");
    assert_eq!(seen, [text("a"), text("b"), text("c")]);
}

/// Writes frames of all kinds, most of them valid.
fn random_wire(role: Role, rng: &mut Rng) -> Vec<u8> {
    let mut wire = Vec::new();
    let mut in_message = false;
    for _ in 0..1 + rng.below(12) {
        let control = rng.below(4) == 0;
        let (opcode, payload_bytes) = if control {
            (*rng.pick(&[0x9, 0xA]), rng.below(126))
        } else {
            let first = *rng.pick(&[0x1, 0x2]);
            let opcode = if in_message { 0x0 } else { first };
            (opcode, *rng.pick(&[0, 1, 5, 125, 126, 200]))
        };
        let text = "zażółć gęślą jaźń €𐍈 ".repeat(10);
        let mut frame = Frame::new(opcode, &text.as_bytes()[..payload_bytes])
            .to_role(role)
            .with_fin(control || rng.below(2) == 0);
        if !control {
            in_message = frame.to_bytes()[0] & 0x80 == 0;
        }
        frame = match rng.below(60) {
            0 => frame.with_rsv(1 + rng.below(7) as u8),
            1 => frame.with_mask((role == Role::Client).then_some(KEY)),
            2 => frame.with_length_form(LengthForm::Bits64),
            3 => Frame::new(0x8, &rng.bytes(rng.clone().below(4))).to_role(role),
            4 => frame.with_fin(false),
            _ => frame,
        };
        wire.extend(frame.to_bytes());
    }
    wire
}

proptest! {
    #[test]
    fn f24_random_frames_read_the_same_in_random_pieces(
        seed in any::<u64>(),
        cuts in proptest::collection::vec(any::<u64>(), 1..6),
        to_server in any::<bool>(),
    ) {
        let role = if to_server { Role::Server } else { Role::Client };
        let wire = random_wire(role, &mut Rng::new(seed));
        let config = Arc::default();
        let engine = || Engine::new(TestEndpoint(role), Arc::clone(&config), Duration::ZERO);
        let whole = feed(&mut engine(), &wire, Cuts::Whole);
        prop_assert_eq!(&feed(&mut engine(), &wire, Cuts::Every(1)), &whole);
        for cut in cuts {
            prop_assert_eq!(&feed(&mut engine(), &wire, Cuts::Random(cut)), &whole);
        }
    }

    #[test]
    fn random_bytes_never_panic_and_read_the_same_in_random_pieces(
        wire in proptest::collection::vec(any::<u8>(), 0..200),
        cut in any::<u64>(),
        to_server in any::<bool>(),
    ) {
        let role = if to_server { Role::Server } else { Role::Client };
        let whole = feed(&mut engine_in(Situation::Idle, role), &wire, Cuts::Whole);
        let pieces = feed(&mut engine_in(Situation::Idle, role), &wire, Cuts::Random(cut));
        prop_assert_eq!(pieces, whole);
    }
}
