//! Lengths that are not minimally encoded, that the standard forbids, or that exceed any limit
//! (RFC 6455 §5.2, §10.4).

use super::{Wire, fails, fails_by_header, in_stages, opcode_name};
use crate::{
    case::{Case, Expect, Row, Verdict, Wait},
    frame::{Frame, LengthForm},
};

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        not_minimal(wire),
        top_bit(wire),
        gigantic(wire),
        cut_short(wire),
    ]
}

fn not_minimal(wire: Wire) -> Row {
    let mut cases = Vec::new();
    let mut add = |opcode: u8, bytes: usize, form: LengthForm, width: u32| {
        let frame = Frame::new(opcode, vec![b'x'; bytes]).with_form(form);
        let name = format!("{}-{bytes}-in-{width}-bits", opcode_name(opcode));
        cases.push(wire.case(name, &[frame], fails(&[1002])));
    };
    for bytes in [0, 1, 64, 124, 125] {
        add(0x1, bytes, LengthForm::Bits16, 16);
    }
    for bytes in [0, 1, 125, 126, 127, 300, 65_534, 65_535] {
        add(0x2, bytes, LengthForm::Bits64, 64);
    }
    for opcode in [0x9, 0xA] {
        add(opcode, 0, LengthForm::Bits16, 16);
        add(opcode, 1, LengthForm::Bits16, 16);
        add(opcode, 125, LengthForm::Bits16, 16);
        add(opcode, 1, LengthForm::Bits64, 64);
    }
    let close = |form| Frame::new(0x8, 1000_u16.to_be_bytes()).with_form(form);
    cases.push(wire.case(
        "close-2-in-16-bits",
        &[close(LengthForm::Bits16)],
        fails(&[1002]),
    ));
    cases.push(wire.case(
        "close-2-in-64-bits",
        &[close(LengthForm::Bits64)],
        fails(&[1002]),
    ));
    let first = || Frame::new(0x1, "x").unfinished();
    let last = |form| Frame::new(0x0, "y").with_form(form);
    cases.push(wire.case(
        "continuation-1-in-16-bits",
        &[first(), last(LengthForm::Bits16)],
        fails(&[1002]),
    ));
    cases.push(wire.case(
        "continuation-1-in-64-bits",
        &[first(), last(LengthForm::Bits64)],
        fails(&[1002]),
    ));
    Row {
        id: "F06",
        title: "lengths that take more bytes than they need",
        section: "RFC 6455 §5.2",
        required: "the minimal number of bytes MUST be used: fail, 1002",
        cases,
    }
}

fn top_bit(wire: Wire) -> Row {
    let claims = [
        ("2-63", 1 << 63),
        ("2-63-and-1", (1 << 63) + 1),
        ("2-64-minus-1", u64::MAX),
        ("2-64-minus-14", u64::MAX - 13),
        ("2-63-and-2-32", (1 << 63) + (1 << 32)),
    ];
    let mut cases = Vec::new();
    for (name, claim) in claims {
        for opcode in [0x1, 0x2] {
            let frame = Frame::new(opcode, "x").claiming(claim);
            let name = format!("{}-{name}", opcode_name(opcode));
            cases.push(wire.case(name, &[frame], fails(&[1002, 1009])));
        }
    }
    let first = Frame::new(0x2, "x").unfinished();
    let last = Frame::new(0x0, "y").claiming(u64::MAX);
    cases.push(wire.case(
        "continuation-2-64-minus-1",
        &[first, last],
        fails(&[1002, 1009]),
    ));
    Row {
        id: "F07",
        title: "lengths whose most significant bit is set",
        section: "RFC 6455 §5.2",
        required: "the most significant bit MUST be 0: fail, 1002 (or 1009), before any payload",
        cases,
    }
}

fn gigantic(wire: Wire) -> Row {
    let case = |name: &str, frames: &[Frame]| wire.case(name, frames, fails_by_header(&[1009]));
    let first = || Frame::new(0x2, "x").unfinished();
    Row {
        id: "F10",
        title: "claimed lengths beyond any limit",
        section: "RFC 6455 §10.4",
        required: "limits MUST be enforced: 1009 after the header, and no memory for what is only claimed",
        cases: vec![
            case(
                "2-63-minus-1",
                &[Frame::new(0x2, "x").claiming(i64::MAX as u64)],
            ),
            case("2-62", &[Frame::new(0x2, "x").claiming(1 << 62)]),
            case("2-53", &[Frame::new(0x1, "x").claiming(1 << 53)]),
            case("2-48", &[Frame::new(0x2, "x").claiming(1 << 48)]),
            case("2-40", &[Frame::new(0x2, "x").claiming(1 << 40)]),
            case("2-40-text", &[Frame::new(0x1, "x").claiming(1 << 40)]),
            case(
                "sum-over-2-63",
                &[first(), Frame::new(0x0, "y").claiming(i64::MAX as u64)],
            ),
            case(
                "sum-of-2-40",
                &[first(), Frame::new(0x0, "y").claiming(1 << 40)],
            ),
        ],
    }
}

/// Connections that end in the middle of a message.
fn cut_short(wire: Wire) -> Row {
    let message = wire.bytes(&[Frame::new(0x1, "Spam")]);
    let first = wire.bytes(&[Frame::new(0x1, "Spam").unfinished()]);
    let case = |name: String, bytes: Vec<u8>| {
        let otherwise = Verdict::Permitted;
        let mut case = in_stages(name, [bytes], Wait::Moment, Expect::End { otherwise });
        case.input.ends = true;
        case
    };
    let mut cases: Vec<Case> = (1..message.len())
        .map(|end| case(format!("at-{end}"), message[..end].to_vec()))
        .collect();
    cases.push(case("between-fragments".into(), first));
    Row {
        id: "F27",
        title: "connections that end in the middle of a message",
        section: "RFC 6455 §7.1.4, §7.1.5",
        required: "no part of the message is delivered, and the connection ends",
        cases,
    }
}
