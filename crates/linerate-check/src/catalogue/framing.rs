//! Reserved bits and opcodes, masking, and the order of frames (RFC 6455 §5.1–§5.4).

use super::{Wire, fails, fails_after, fails_by_header, opcode_name, text};
use crate::{
    case::{Case, Row, Wait},
    frame::{Frame, Role},
};

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        reserved_bits(wire, "F01", "RSV1 without an extension", &[4]),
        reserved_bits(
            wire,
            "F02",
            "all other combinations of reserved bits",
            &[1, 2, 3, 5, 6, 7],
        ),
        reserved_opcodes(wire),
        wrong_masks(wire),
        continuations(wire),
        interrupted(wire),
    ]
}

fn reserved_bits(wire: Wire, id: &'static str, title: &'static str, bits: &[u8]) -> Row {
    let mut cases = Vec::new();
    for &bits in bits {
        for opcode in [0x0, 0x1, 0x2, 0x8, 0x9, 0xA] {
            let frame = || Frame::new(opcode, payload(opcode)).with_rsv(bits);
            let name = format!("rsv-{bits:03b}-{}", opcode_name(opcode));
            // A continuation frame without a message to continue is an error in itself.
            if opcode != 0x0 {
                cases.push(wire.case(name.clone(), &[frame()], fails(&[1002])));
            }
            if opcode == 0x0 || opcode >= 0x8 {
                let first = Frame::new(0x1, "x").unfinished();
                let name = format!("{name}-in-message");
                cases.push(wire.case(name, &[first, frame()], fails(&[1002])));
            }
        }
    }
    Row {
        id,
        title,
        section: "RFC 6455 §5.2",
        required: "fail the connection, 1002",
        cases,
    }
}

fn payload(opcode: u8) -> &'static [u8] {
    if opcode == 0x8 { b"\x03\xe8" } else { b"x" }
}

fn reserved_opcodes(wire: Wire) -> Row {
    let mut cases = Vec::new();
    for opcode in (0x3..=0x7).chain(0xB..=0xF) {
        for (fin, payload) in [(true, ""), (true, "x"), (false, ""), (false, "x")] {
            let mut frame = Frame::new(opcode, payload);
            let mut name = opcode_name(opcode);
            if !fin {
                frame = frame.unfinished();
                name += "-unfinished";
            }
            if payload.is_empty() {
                name += "-empty";
            }
            let first = Frame::new(0x1, "x").unfinished();
            cases.push(wire.case(name.clone(), &[frame.clone()], fails(&[1002])));
            name += "-in-message";
            cases.push(wire.case(name, &[first, frame], fails(&[1002])));
        }
    }
    Row {
        id: "F03",
        title: "reserved opcodes",
        section: "RFC 6455 §5.2",
        required: "fail the connection, 1002",
        cases,
    }
}

fn wrong_masks(wire: Wire) -> Row {
    let mut cases = Vec::new();
    for (opcode, payload) in [
        (0x1, &b""[..]),
        (0x1, b"x"),
        (0x2, b"x"),
        (0x8, b""),
        (0x8, b"\x03\xe8"),
        (0x9, b""),
        (0x9, b"x"),
        (0xA, b"x"),
    ] {
        let frame = Frame::new(opcode, payload).with_wrong_mask();
        let name = format!("{}-{}", opcode_name(opcode), payload.len());
        cases.push(wire.case(name, &[frame], fails(&[1002])));
    }
    let first = || Frame::new(0x1, "x").unfinished();
    let last = || Frame::new(0x0, "y").with_wrong_mask();
    cases.push(wire.case("second-fragment", &[first(), last()], fails(&[1002])));
    let one = Frame::new(0x1, "one");
    let two = Frame::new(0x1, "two").with_wrong_mask();
    cases.push(wire.case(
        "second-message",
        &[one, two],
        fails_after(&[1002], vec![text("one")]),
    ));
    let long = Frame::new(0x2, vec![7; 300]).with_wrong_mask();
    cases.push(wire.case("binary-300", &[long], fails(&[1002])));
    let (id, title) = match wire.0 {
        Role::Server => ("F04", "frames from a client that are not masked"),
        Role::Client => ("F05", "frames from a server that are masked"),
    };
    Row {
        id,
        title,
        section: "RFC 6455 §5.1",
        required: "close the connection, 1002",
        cases,
    }
}

fn continuations(wire: Wire) -> Row {
    let of_nothing = |name: &str, frames: &[Frame]| wire.case(name, frames, fails(&[1002]));
    let behind = |name: &str, last: Frame| {
        let frames = [Frame::new(0x1, "one"), last];
        wire.case(name, &frames, fails_after(&[1002], vec![text("one")]))
    };
    Row {
        id: "F14",
        title: "continuation frames with no message to continue",
        section: "RFC 6455 §5.4",
        required: "fail the connection, 1002",
        cases: vec![
            of_nothing("last", &[Frame::new(0x0, "x")]),
            of_nothing("last-empty", &[Frame::new(0x0, "")]),
            of_nothing("not-last", &[Frame::new(0x0, "x").unfinished()]),
            of_nothing("not-last-empty", &[Frame::new(0x0, "").unfinished()]),
            behind("after-a-message", Frame::new(0x0, "x")),
            behind(
                "after-a-message-not-last",
                Frame::new(0x0, "x").unfinished(),
            ),
        ],
    }
}

fn interrupted(wire: Wire) -> Row {
    let mut cases: Vec<Case> = Vec::new();
    for first in [0x1, 0x2] {
        for second in [0x1, 0x2] {
            for fin in [true, false] {
                let begun = Frame::new(first, "x").unfinished();
                let mut other = Frame::new(second, "y");
                if !fin {
                    other = other.unfinished();
                }
                let (first, second) = (opcode_name(first), opcode_name(second));
                let end = if fin { "" } else { "-unfinished" };
                let name = format!("{second}-in-{first}{end}");
                cases.push(wire.case(name, &[begun, other], fails(&[1002])));
            }
        }
    }
    let begun = Frame::new(0x1, "").unfinished();
    let late = [Frame::new(0x1, "y")];
    let after_a_moment = wire.staged(
        "after-a-moment",
        &[&[begun], &late],
        Wait::Answer,
        fails(&[1002]),
    );
    cases.push(after_a_moment);
    let begun = Frame::new(0x1, "x").unfinished();
    let claimed = Frame::new(0x1, "").claiming(1_000);
    cases.push(wire.case("header-only", &[begun, claimed], fails_by_header(&[1002])));
    Row {
        id: "F15",
        title: "a message inside another",
        section: "RFC 6455 §5.4",
        required: "fail the connection, 1002",
        cases,
    }
}
