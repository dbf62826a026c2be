//! Headers whose first two bytes violate a rule (RFC 6455 §5.1, §5.2, §5.5).

use linerate_proto::{Opcode, ProtocolError, Role};
use linerate_testkit::{Frame, KEY, LengthForm};

use crate::situation::{ROLES, Situation, assert_fails};

const CONTROL: [(u8, Opcode); 3] = [
    (0x8, Opcode::Close),
    (0x9, Opcode::Ping),
    (0xA, Opcode::Pong),
];

#[test]
fn f01_rsv1_without_an_extension_fails_with_1002() {
    for role in ROLES {
        for opcode in [0x1, 0x2] {
            let frame = Frame::new(opcode, b"Hello").with_rsv(4).to_role(role);
            let error = ProtocolError::ReservedBits { rsv: 4 };
            assert_fails(role, &Situation::READING, &frame.to_bytes(), error, 1002);
        }
    }
}

#[test]
fn f02_any_reserved_bit_on_any_opcode_fails_with_1002() {
    for role in ROLES {
        for rsv in 1..=7 {
            for opcode in 0..=0xF {
                let frame = Frame::new(opcode, b"ab").with_rsv(rsv).to_role(role);
                let error = ProtocolError::ReservedBits { rsv };
                assert_fails(role, &Situation::READING, &frame.to_bytes(), error, 1002);
            }
        }
    }
}

#[test]
fn f03_reserved_opcodes_fail_with_1002() {
    for role in ROLES {
        for opcode in [3, 4, 5, 6, 7, 0xB, 0xC, 0xD, 0xE, 0xF] {
            for (fin, payload) in [(true, ""), (true, "ab"), (false, ""), (false, "ab")] {
                let frame = Frame::new(opcode, payload.as_bytes()).with_fin(fin);
                let wire = frame.to_role(role).to_bytes();
                let error = ProtocolError::ReservedOpcode { opcode };
                assert_fails(role, &Situation::READING, &wire, error, 1002);
            }
        }
    }
}

#[test]
fn f04_server_rejects_unmasked_frames_with_1002() {
    for opcode in [0x0, 0x1, 0x2, 0x8, 0x9, 0xA] {
        for payload in ["", "Hello"] {
            let wire = Frame::new(opcode, payload.as_bytes()).to_bytes();
            let error = ProtocolError::UnmaskedFrame;
            assert_fails(Role::Server, &Situation::READING, &wire, error, 1002);
        }
    }
}

#[test]
fn f05_client_rejects_masked_frames_with_1002() {
    for opcode in [0x0, 0x1, 0x2, 0x8, 0x9, 0xA] {
        for key in [KEY, [0; 4]] {
            let wire = Frame::new(opcode, b"Hello").with_mask(Some(key)).to_bytes();
            let error = ProtocolError::MaskedFrame;
            assert_fails(Role::Client, &Situation::READING, &wire, error, 1002);
        }
    }
}

#[test]
fn f11_control_frames_of_more_than_125_bytes_fail_with_1002() {
    for role in ROLES {
        for (opcode, _) in CONTROL {
            for (form, claimed_bytes, length_field) in [
                (LengthForm::Bits16, 126, 126),
                (LengthForm::Bits16, 65_535, 126),
                (LengthForm::Bits64, 65_536, 127),
                // This length is not minimal either, but a control frame must not use this form at
                // all.
                (LengthForm::Bits64, 5, 127),
            ] {
                let frame = Frame::new(opcode, b"Hello")
                    .with_length_form(form)
                    .with_claimed_bytes(claimed_bytes);
                let wire = frame.to_role(role).to_bytes();
                let error = ProtocolError::ControlTooLong { length_field };
                assert_fails(role, &Situation::READING, &wire, error, 1002);
            }
        }
    }
}

#[test]
fn f12_fragmented_control_frames_fail_with_1002() {
    for role in ROLES {
        for (bits, opcode) in CONTROL {
            for payload in ["", "Hello"] {
                let frame = Frame::new(bits, payload.as_bytes()).with_fin(false);
                let wire = frame.to_role(role).to_bytes();
                let error = ProtocolError::ControlFragmented { opcode };
                assert_fails(role, &Situation::READING, &wire, error, 1002);
            }
        }
    }
}
