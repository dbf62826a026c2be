//! Frames that violate the protocol: the exact bytes of the Close frame, and the end of the stream.

use linerate_proto::Role;
use linerate_testkit::{Frame, LengthForm};

use crate::support::{Raw, Running, close, fragment, masked, unmasked};

fn fails_with(wire: &[u8], code: u16) {
    let server = Running::echo();
    for pieces in [wire.len(), 1] {
        let mut raw = Raw::open(server.address);
        for piece in wire.chunks(pieces) {
            // The server may have closed the connection before the last piece is sent.
            if std::io::Write::write_all(&mut raw.stream, piece).is_err() {
                break;
            }
        }
        assert_eq!(raw.rest(), close(code), "{}", wire.escape_ascii());
    }
}

fn hostile(frame: Frame) -> Vec<u8> {
    frame.to_role(Role::Server).to_bytes()
}

#[test]
fn broken_frames_fail_with_1002() {
    let frames = [
        hostile(Frame::new(0x1, b"x").with_rsv(4)),
        hostile(Frame::new(0x9, b"").with_rsv(3)),
        hostile(Frame::new(0x3, b"x")),
        hostile(Frame::new(0xB, b"")),
        hostile(Frame::new(0x1, b"x").with_length_form(LengthForm::Bits16)),
        hostile(Frame::new(0x2, b"").with_claimed_bytes(u64::MAX)),
        hostile(Frame::new(0x9, &[b'x'; 126])),
        hostile(Frame::new(0x9, b"x").with_fin(false)),
        hostile(Frame::new(0x0, b"x")),
        hostile(Frame::new(0x8, b"\x03")),
        hostile(Frame::new(0x8, b"\x03\xed")),
        Frame::new(0x1, b"x").to_bytes(),
        [fragment(0x1, b"x", false), masked(0x1, b"y")].concat(),
    ];
    for frame in frames {
        fails_with(&frame, 1002);
    }
}

#[test]
fn text_that_is_not_utf8_fails_with_1007_as_soon_as_that_is_known() {
    fails_with(&masked(0x1, b"ok \xC0\x80"), 1007);
    fails_with(&masked(0x1, b"\xE2\x82"), 1007);
    fails_with(&fragment(0x1, b"\xED\xA0\x80", false), 1007);
    fails_with(&masked(0x8, b"\x03\xe8\xff"), 1007);
    // Invalid text inside an unfinished frame.
    let claimed = Frame::new(0x1, b"abc\xFFdef").with_claimed_bytes(1_000);
    fails_with(&hostile(claimed), 1007);
}

#[test]
fn what_came_before_a_broken_frame_is_answered() {
    let server = Running::echo();
    let mut raw = Raw::open(server.address);
    raw.send(&[masked(0x1, b"first"), Frame::new(0x1, b"x").to_bytes()].concat());
    assert_eq!(raw.rest(), [unmasked(0x1, b"first"), close(1002)].concat());
}

#[test]
fn a_close_is_answered_with_its_code_and_nothing_follows() {
    let server = Running::echo();
    for payload in [&b""[..], b"\x03\xe8", b"\x0f\xa0why"] {
        let mut raw = Raw::open(server.address);
        raw.send(&[masked(0x8, payload), masked(0x1, b"late"), masked(0x9, b"")].concat());
        let code = &payload[..payload.len().min(2)];
        assert_eq!(raw.rest(), unmasked(0x8, code));
    }
}
