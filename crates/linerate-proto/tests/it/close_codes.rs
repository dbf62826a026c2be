//! Valid and invalid payloads of Close frames (RFC 6455 §5.5.1, §7.4).

use std::sync::Arc;

use linerate_proto::{ProtocolError, Role};
use linerate_testkit::{Cuts, Frame, Record, Seen, feed};

use crate::situation::{ROLES, Situation, assert_fails, close_frame, engine_in, read};

#[test]
fn f20_a_close_of_one_byte_fails_with_1002() {
    for role in ROLES {
        for byte in [0x00, 0x03, 0xFF] {
            let wire = Frame::new(0x8, &[byte]).to_role(role).to_bytes();
            let error = ProtocolError::CloseTooShort;
            assert_fails(role, &Situation::READING, &wire, error, 1002);
        }
    }
}

#[test]
fn f21_codes_that_must_not_be_sent_fail_with_1002_and_are_not_echoed() {
    for role in ROLES {
        for code in [
            0u16, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535,
        ] {
            let payload = [&code.to_be_bytes()[..], b"why"].concat();
            let wire = Frame::new(0x8, &payload).to_role(role).to_bytes();
            let error = ProtocolError::CloseCode { code };
            assert_fails(role, &Situation::READING, &wire, error, 1002);
        }
    }
}

/// The codes that may be sent: the table of RFC 6455 §7.4.1, the IANA registry's 1012 to 1014, and
/// the ranges of §7.4.2.
fn may_be_sent(code: u16) -> bool {
    const DEFINED: [u16; 12] = [
        1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
    ];
    DEFINED.contains(&code) || code / 1000 == 3 || code / 1000 == 4
}

#[test]
fn f21_each_of_the_65_536_codes_is_echoed_or_refused() {
    for role in ROLES {
        let config = Arc::default();
        for code in 0..=u16::MAX {
            let frame = Frame::new(0x8, &code.to_be_bytes()).to_role(role);
            let mut engine = Situation::Idle.engine(role, &config);
            let record = feed(&mut engine, &frame.to_bytes(), Cuts::Whole);
            let (seen, answer) = if may_be_sent(code) {
                (Seen::close(Some(code), ""), code)
            } else {
                (Seen::Error(ProtocolError::CloseCode { code }), 1002)
            };
            let expected = Record {
                seen: vec![seen],
                unfinished: None,
                output: close_frame(role, answer),
            };
            assert_eq!(record, expected, "{role:?} {code}");
        }
    }
}

#[test]
fn f22_a_reason_that_is_not_utf8_fails_with_1007() {
    for role in ROLES {
        for (reason, offset) in [
            (&b"\xff"[..], 0),
            (b"why \xc0\x80", 4),
            (b"\xed\xa0\x80", 1),
            (b"\xf4\x90\x80\x80", 1),
            (b"cut \xe2\x82", 6),
        ] {
            let payload = [b"\x03\xe8", reason].concat();
            let wire = Frame::new(0x8, &payload).to_role(role).to_bytes();
            let error = ProtocolError::InvalidUtf8 { offset };
            assert_fails(role, &Situation::READING, &wire, error, 1007);
        }
    }
}

#[test]
fn f22_a_code_point_truncated_at_byte_123_of_the_reason_fails_with_1007() {
    for role in ROLES {
        let mut reason = "x".repeat(122) + "é";
        let cut = [b"\x03\xe8", &reason.as_bytes()[..123]].concat();
        let wire = Frame::new(0x8, &cut).to_role(role).to_bytes();
        let error = ProtocolError::InvalidUtf8 { offset: 123 };
        assert_fails(role, &Situation::READING, &wire, error, 1007);

        reason.remove(0);
        let whole = [b"\x03\xe8", reason.as_bytes()].concat();
        let wire = Frame::new(0x8, &whole).to_role(role).to_bytes();
        let record = read(role, &wire);
        assert_eq!(record.seen, [Seen::close(Some(1000), &reason)]);
    }
}

#[test]
fn only_the_code_is_echoed_but_not_the_reason() {
    let wire = Frame::new(0x8, b"\x0f\xa0secret").to_role(Role::Server);
    let mut engine = engine_in(Situation::Idle, Role::Server);
    let record = feed(&mut engine, &wire.to_bytes(), Cuts::Whole);
    assert_eq!(record.seen, [Seen::close(Some(4000), "secret")]);
    assert_eq!(record.output, b"\x88\x02\x0f\xa0");
}

#[test]
fn a_close_without_a_code_is_answered_without_a_code() {
    for (role, answer) in [
        (Role::Client, &b"\x88\x80\x37\xfa\x21\x3d"[..]),
        (Role::Server, b"\x88\x00"),
    ] {
        let wire = Frame::new(0x8, b"").to_role(role).to_bytes();
        let record = read(role, &wire);
        assert_eq!(record.seen, [Seen::close(None, "")]);
        assert_eq!(record.output, answer);
    }
}
