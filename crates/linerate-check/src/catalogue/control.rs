//! Control frames (RFC 6455 §5.5).

use super::{Wire, fails, fails_by_header, opcode_name};
use crate::{
    case::{Case, Row, Wait},
    frame::{Frame, LengthForm},
};

const OPCODES: [u8; 3] = [0x8, 0x9, 0xA];

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![long(wire), fragmented(wire)]
}

fn long(wire: Wire) -> Row {
    let mut cases: Vec<Case> = Vec::new();
    for opcode in OPCODES {
        for bytes in [126, 127, 1_000, 65_535, 65_536] {
            let frame = Frame::new(opcode, payload(opcode, bytes));
            let name = format!("{}-{bytes}", opcode_name(opcode));
            cases.push(wire.case(name, &[frame], fails(&[1002])));
        }
        let in_64_bits = Frame::new(opcode, payload(opcode, 126)).with_form(LengthForm::Bits64);
        let name = format!("{}-126-in-64-bits", opcode_name(opcode));
        cases.push(wire.case(name, &[in_64_bits], fails(&[1002])));
        let header = Frame::new(opcode, "").claiming(126);
        let name = format!("{}-header-only", opcode_name(opcode));
        cases.push(wire.case(name, &[header], fails_by_header(&[1002])));
        let first = Frame::new(0x1, "x").unfinished();
        let name = format!("{}-126-in-message", opcode_name(opcode));
        let frames = [first, Frame::new(opcode, payload(opcode, 126))];
        cases.push(wire.case(name, &frames, fails(&[1002])));
    }
    Row {
        id: "F11",
        title: "control frames of more than 125 bytes",
        section: "RFC 6455 §5.5",
        required: "fail the connection, 1002",
        cases,
    }
}

fn payload(opcode: u8, bytes: usize) -> Vec<u8> {
    let mut payload = vec![b'x'; bytes];
    if opcode == 0x8 {
        payload[..2].copy_from_slice(&1000_u16.to_be_bytes());
    }
    payload
}

fn fragmented(wire: Wire) -> Row {
    let mut cases = Vec::new();
    for opcode in OPCODES {
        let kind = opcode_name(opcode);
        let begun = || Frame::new(opcode, payload(opcode, 2)).unfinished();
        cases.push(wire.case(kind.clone(), &[begun()], fails(&[1002])));
        let empty = Frame::new(opcode, "").unfinished();
        cases.push(wire.case(format!("{kind}-empty"), &[empty], fails(&[1002])));
        let frames = [begun(), Frame::new(0x0, "y")];
        cases.push(wire.case(format!("{kind}-and-continuation"), &frames, fails(&[1002])));
        let message = Frame::new(0x1, "x").unfinished();
        cases.push(wire.staged(
            format!("{kind}-in-message"),
            &[&[message], &[begun()]],
            Wait::Moment,
            fails(&[1002]),
        ));
    }
    Row {
        id: "F12",
        title: "control frames in fragments",
        section: "RFC 6455 §5.5",
        required: "fail the connection, 1002",
        cases,
    }
}
