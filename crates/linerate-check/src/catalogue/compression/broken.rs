//! Compressed messages that must be rejected (RFC 7692 §6, §7.2.2; RFC 6455 §5.2, §8.1).

use super::{EACH, HELLO, case, compressed, deflated, offering};
use crate::{
    case::Row,
    catalogue::{Wire, fails, opcode_name},
    frame::Frame,
};

pub(super) fn reserved_bits(wire: Wire) -> Row {
    let mut cases = Vec::new();
    for opcode in [0x8, 0x9, 0xA] {
        let payload: &[u8] = if opcode == 0x8 { b"\x03\xe8" } else { b"x" };
        let name = format!("rsv1-{}", opcode_name(opcode));
        cases.push(case(
            wire,
            &name,
            &[compressed(opcode, payload)],
            fails(&[1002]),
        ));
    }
    for bits in [1, 2, 3, 5, 6, 7] {
        let frame = Frame::new(0x1, HELLO).with_rsv(bits);
        cases.push(case(
            wire,
            &format!("rsv-{bits:03b}"),
            &[frame],
            fails(&[1002]),
        ));
    }
    let (one, two) = HELLO.split_at(3);
    let last = |bits| Frame::new(0x0, two).with_rsv(bits);
    let first = || compressed(0x1, one).unfinished();
    cases.push(case(
        wire,
        "rsv1-continuation",
        &[first(), last(4)],
        fails(&[1002]),
    ));
    let plain = || Frame::new(0x1, "He").unfinished();
    cases.push(case(
        wire,
        "rsv1-continuation-of-plain",
        &[plain(), Frame::new(0x0, "llo").with_rsv(4)],
        fails(&[1002]),
    ));
    Row {
        id: "X08",
        title: "reserved bits that a compressed message must not set",
        section: "RFC 7692 §6; RFC 6455 §5.2",
        required: "fail the connection, 1002",
        cases,
    }
}

pub(super) fn broken(wire: Wire) -> Row {
    let case = |name: &str, payload: &[u8]| {
        let expect = fails(&[1002, 1003, 1007, 1008, 1011]);
        offering(EACH, wire.case(name, &[compressed(0x2, payload)], expect))
    };
    let lengths = b"\x05\xe0\xff\xff\xff\xff\xff\xff\xff\xff";
    Row {
        id: "X03",
        title: "data that cannot be inflated",
        section: "RFC 7692 §7.2.2; RFC 1951 §3.2",
        required: "fail the connection (the standard names no code; 1007 is usual)",
        cases: vec![
            case("reserved-block", b"\x07"),
            case("reserved-block-ff", b"\xff\xff\xff\xff"),
            case("distance-before-the-start", b"\xf2\x00\x11\x00\x00"),
            case("stored-length-wrong", b"\x00\x05\x00\x00\x00Hello\x00"),
            case("letters", b"this is not deflate"),
            case("bad-code-lengths", lengths),
        ],
    }
}

pub(super) fn not_text(wire: Wire) -> Row {
    let case = |name: &str, payload: &[u8]| {
        let frame = compressed(0x1, deflated(wire, payload));
        case(wire, name, &[frame], fails(&[1007]))
    };
    let mut far = vec![b'a'; 40_000];
    far.push(0xFF);
    Row {
        id: "U08",
        title: "text that is not UTF-8 once it is inflated",
        section: "RFC 6455 §8.1; RFC 7692 §6.2",
        required: "fail the connection, 1007",
        cases: vec![
            case("ff", b"\xff"),
            case("surrogate", b"ok \xed\xa0\x80"),
            case("ends-inside", b"ok \xf0\x9f"),
            case("behind-40000", &far),
        ],
    }
}
