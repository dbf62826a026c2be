//! Valid compressed messages (RFC 7692 §6, §7.2).

use super::{
    FINAL, HELLO, STORED, TWO_BLOCKS, answers, case, compressed, deflated, hello, keeping,
};
use crate::{
    case::{Row, Wait},
    catalogue::{Wire, binary, in_stages, pong, text},
    frame::Frame,
};

pub(super) fn valid(wire: Wire) -> Row {
    let random: Vec<u8> = (0..20_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let long = "linerate ".repeat(10_000);
    let both_kinds = [
        compressed(0x1, HELLO),
        Frame::new(0x1, "Hello"),
        compressed(0x1, HELLO),
    ];
    let hellos = answers(&[hello(), hello(), hello()]);
    let both_kinds = case(wire, "both-kinds", &both_kinds, hellos);
    let case = |name: &str, frame: Frame, answer| case(wire, name, &[frame], answers(&[answer]));
    let compressed_binary = compressed(0x2, deflated(wire, &random));
    let compressed_text = compressed(0x1, deflated(wire, long.as_bytes()));
    Row {
        id: "X14",
        title: "compressed messages",
        section: "RFC 7692 §6, §7.2",
        required: "accept",
        cases: vec![
            case("hello", compressed(0x1, HELLO), hello()),
            case("stored", compressed(0x1, STORED), hello()),
            case("two-blocks", compressed(0x1, TWO_BLOCKS), hello()),
            case("not-compressed", Frame::new(0x1, "Hello"), hello()),
            both_kinds,
            case("binary-20000", compressed_binary, binary(&*random)),
            case("text-90000", compressed_text, text(&*long)),
        ],
    }
}

pub(super) fn empty(wire: Wire) -> Row {
    let case = |name: &str, frames: &[Frame], answer| case(wire, name, frames, answers(&[answer]));
    let empty_last = [compressed(0x1, HELLO).unfinished(), Frame::new(0x0, "")];
    let empty_first = [compressed(0x1, "").unfinished(), Frame::new(0x0, HELLO)];
    Row {
        id: "X07",
        title: "empty messages, compressed",
        section: "RFC 7692 §7.2.3.6",
        required: "accept",
        cases: vec![
            case("one-byte", &[compressed(0x1, b"\x00")], text("")),
            case("fixed-block", &[compressed(0x1, b"\x02\x00")], text("")),
            case("empty-last-fragment", &empty_last, hello()),
            case("empty-first-fragment", &empty_first, hello()),
        ],
    }
}

pub(super) fn finals(wire: Wire) -> Row {
    let twice = [compressed(0x1, FINAL), compressed(0x1, FINAL)];
    let then_plain = [compressed(0x1, FINAL), compressed(0x1, HELLO)];
    let two = || answers(&[hello(), hello()]);
    Row {
        id: "X10",
        title: "blocks with BFINAL set",
        section: "RFC 7692 §7.2.3.4",
        required: "accept",
        cases: vec![
            case(wire, "once", &[compressed(0x1, FINAL)], answers(&[hello()])),
            case(wire, "twice", &twice, two()),
            case(wire, "then-another", &then_plain, two()),
        ],
    }
}

pub(super) fn takeover(wire: Wire) -> Row {
    // RFC 7692 §7.2.3.2: the second `Hello` refers to the first.
    let refers = compressed(0x1, b"\xf2\x00\x11\x00\x00");
    let both = [compressed(0x1, HELLO), refers];
    let bytes = wire.bytes(&both);
    let each = bytes.iter().map(|byte| vec![*byte]);
    let two = || answers(&[hello(), hello()]);
    let in_bytes = in_stages("each-byte", each, Wait::Moment, two());
    Row {
        id: "X04",
        title: "messages that refer to earlier ones",
        section: "RFC 7692 §7.2.3.2",
        required: "accept, if keeping the window was negotiated",
        cases: vec![keeping(case(wire, "both", &both, two())), keeping(in_bytes)],
    }
}

pub(super) fn fragments(wire: Wire) -> Row {
    let pieces = |count: usize| -> Vec<Frame> {
        let chunks = HELLO.chunks(HELLO.len().div_ceil(count)).enumerate();
        let mut frames: Vec<Frame> = chunks
            .map(|(index, chunk)| match index {
                0 => compressed(0x1, chunk).unfinished(),
                _ => Frame::new(0x0, chunk).unfinished(),
            })
            .collect();
        frames.push(Frame::new(0x0, ""));
        frames
    };
    let mut with_ping = pieces(2);
    with_ping.insert(1, Frame::new(0x9, "?"));
    let after_pong = answers(&[pong("?"), hello()]);
    Row {
        id: "X11",
        title: "compressed messages in fragments",
        section: "RFC 7692 §6.1",
        required: "accept",
        cases: vec![
            case(wire, "two", &pieces(2), answers(&[hello()])),
            case(wire, "seven", &pieces(7), answers(&[hello()])),
            case(wire, "ping-between", &with_ping, after_pong),
        ],
    }
}
