//! Sending by an application, and each error that it can cause (RFC 6455 §5.4–§5.6).

use core::time::Duration;

use linerate_proto::{
    CloseCode, Engine, MaskKey, Role, SendError,
    engine::{MessageKind, State},
};
use linerate_testkit::{Cuts, KEY, Seen, TestEndpoint, feed};

use crate::situation::{ROLES, Situation, engine_in};

fn open(role: Role) -> (Engine<TestEndpoint>, Vec<u8>) {
    (engine_in(Situation::Idle, role), Vec::new())
}

#[test]
fn server_frames_are_not_masked() {
    let (mut engine, mut out) = open(Role::Server);
    engine.send_text(&mut out, "Hello").unwrap();
    engine.send_binary(&mut out, b"\x00\x01").unwrap();
    engine.send_ping(&mut out, b"Hello").unwrap();
    engine.send_pong(&mut out, b"").unwrap();
    assert_eq!(out, b"\x81\x05Hello\x82\x02\x00\x01\x89\x05Hello\x8a\x00");
}

#[test]
fn client_frames_are_masked() {
    let (mut engine, mut out) = open(Role::Client);
    engine.send_text(&mut out, "Hello").unwrap();
    engine.send_pong(&mut out, b"Hello").unwrap();
    assert_eq!(
        out,
        b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
    );
}

#[test]
fn fragments_carry_the_opcode_of_the_message_once() {
    let (mut engine, mut out) = open(Role::Server);
    let mut send = |payload, fin| {
        let kind = MessageKind::Text;
        engine.send_fragment(&mut out, kind, payload, fin).unwrap();
        assert_eq!(engine.is_message_in_progress(), !fin);
    };
    send(b"Hel", false);
    send(b"", false);
    send(b"lo", true);
    send(b"one", true);
    assert_eq!(out, b"\x01\x03Hel\x00\x00\x80\x02lo\x81\x03one");
}

#[test]
fn a_prefix_is_followed_by_the_callers_payload() {
    for (role, key) in [(Role::Client, Some(MaskKey(KEY))), (Role::Server, None)] {
        for bytes in [0, 125, 126, 65_535, 65_536, 1 << 40] {
            let (mut engine, mut out) = open(role);
            let mask = engine.send_prefix(&mut out, MessageKind::Binary, bytes);
            assert_eq!(mask, Ok(key));
            let expected = linerate_testkit::Frame::new(0x2, b"")
                .with_claimed_bytes(bytes)
                .with_mask(key.map(|MaskKey(key)| key));
            assert_eq!(out, expected.to_bytes());
        }
    }
}

#[test]
fn each_length_form_is_decoded() {
    for role in ROLES {
        let (mut sender, mut wire) = open(role);
        let sizes = [0, 1, 125, 126, 65_535, 65_536, 100_000];
        let messages = sizes.map(|bytes| "é".repeat(bytes / 2));
        for message in &messages {
            sender.send_text(&mut wire, message).unwrap();
        }
        let peer = ROLES[usize::from(role == Role::Client)];
        let record = feed(&mut open(peer).0, &wire, Cuts::Every(1_400));
        let expected = messages.map(|message| Seen::text(&message));
        assert_eq!(record.seen, expected);
    }
}

#[test]
fn a_close_reason_of_more_than_123_bytes_is_refused() {
    let (mut engine, mut out) = open(Role::Server);
    let reason = "x".repeat(124);
    assert_eq!(
        engine.close(CloseCode::NORMAL, &reason, Duration::ZERO),
        Err(SendError::CloseReasonTooLong { bytes: 124 })
    );
    assert_eq!(engine.state(), State::Open);
    engine
        .close(CloseCode::NORMAL, &reason[1..], Duration::ZERO)
        .unwrap();
    engine.poll_transmit(&mut out);
    assert_eq!(out[..4], *b"\x88\x7d\x03\xe8");
    assert_eq!(out[4..], reason.as_bytes()[1..]);
}

#[test]
fn nothing_is_sent_once_the_connection_is_closing() {
    let (mut engine, mut out) = open(Role::Server);
    engine.close(CloseCode::NORMAL, "", Duration::ZERO).unwrap();
    let kind = MessageKind::Binary;
    assert_eq!(engine.send(&mut out, kind, b""), Err(SendError::Closed));
    assert_eq!(
        engine.send_prefix(&mut out, kind, 1),
        Err(SendError::Closed)
    );
    assert_eq!(
        engine.send_fragment(&mut out, kind, b"", true),
        Err(SendError::Closed)
    );
    assert_eq!(out, b"");
}

#[test]
fn a_control_payload_of_more_than_125_bytes_is_refused() {
    let (mut engine, mut out) = open(Role::Server);
    let payload = [b'x'; 126];
    let refused = Err(SendError::ControlTooLong { bytes: 126 });
    assert_eq!(engine.send_ping(&mut out, &payload), refused);
    assert_eq!(engine.send_pong(&mut out, &payload), refused);
    assert_eq!(out, b"");
    engine.send_ping(&mut out, &payload[1..]).unwrap();
    assert_eq!(out.len(), 127);
}

#[test]
fn a_message_must_end_before_the_next_begins() {
    let (mut engine, mut out) = open(Role::Server);
    let refused = Err(SendError::MessageInProgress);
    engine
        .send_fragment(&mut out, MessageKind::Text, b"a", false)
        .unwrap();
    assert_eq!(engine.send_text(&mut out, "b"), refused);
    assert_eq!(
        engine.send_fragment(&mut out, MessageKind::Binary, b"b", true),
        refused
    );
    assert_eq!(
        engine.send_prefix(&mut out, MessageKind::Text, 1),
        Err(SendError::MessageInProgress)
    );
    engine.send_ping(&mut out, b"").unwrap();
    engine
        .send_fragment(&mut out, MessageKind::Text, b"c", true)
        .unwrap();
    engine.send_text(&mut out, "d").unwrap();
    assert_eq!(out, b"\x01\x01a\x89\x00\x80\x01c\x81\x01d");
}
