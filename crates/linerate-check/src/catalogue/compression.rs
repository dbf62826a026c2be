//! Compressed messages (RFC 7692), where the server agrees to them.

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

use super::{Wire, fails, in_stages, text};
use crate::{
    case::{Answer, Case, Expect, Opening, Row, Wait},
    frame::{Frame, Role},
    run::request,
};

/// The plainest offer.
const OFFER: &str = "permessage-deflate";

/// An offer after which no message refers to one before it.
const EACH: &str = "permessage-deflate; client_no_context_takeover";

/// An offer that leaves it to the server how large our window is.
const ANY_WINDOW: &str = "permessage-deflate; client_max_window_bits";

/// `Hello`, compressed (RFC 7692 §7.2.3.1).
const HELLO: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";

/// `Hello` in a block without compression (RFC 7692 §7.2.3.3).
const STORED: &[u8] = b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00";

/// `Hello` in a block that says that it is the last one (RFC 7692 §7.2.3.4).
const FINAL: &[u8] = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";

/// `Hello` in two blocks (RFC 7692 §7.2.3.5).
const TWO_BLOCKS: &[u8] = b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00";

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        valid(wire),
        empty(wire),
        finals(wire),
        takeover(wire),
        reserved_bits(wire),
        broken(wire),
        not_text(wire),
        fragments(wire),
        windows(wire),
        bad_offers(),
    ]
}

/// Returns the rows for a client that offers compression.
pub(super) fn rows_of_client(wire: Wire) -> Vec<Row> {
    vec![
        valid(wire),
        empty(wire),
        finals(wire),
        takeover(wire),
        reserved_bits(wire),
        broken(wire),
        not_text(wire),
        fragments(wire),
        bad_answers(),
    ]
}

/// Returns a compressed frame.
fn compressed(opcode: u8, payload: impl Into<Vec<u8>>) -> Frame {
    Frame::new(opcode, payload).with_rsv(4)
}

fn case(wire: Wire, name: &str, frames: &[Frame], expect: Expect) -> Case {
    offering(
        OFFER,
        in_stages(name, [wire.bytes(frames)], Wait::Answer, expect),
    )
}

fn offering(offer: &'static str, mut case: Case) -> Case {
    case.input.opening = Opening::Extended(offer);
    case
}

/// Returns an input whose messages refer to those before them.
fn keeping(mut case: Case) -> Case {
    case.input.opening = Opening::Takeover(ANY_WINDOW);
    case
}

fn answers(answers: &[Answer]) -> Expect {
    Expect::Answers(answers.to_vec())
}

fn hello() -> Answer {
    text("Hello")
}

/// Compresses as the standard describes it (RFC 7692 §7.2.1). Clients may ask for small windows, so nothing for
/// them refers back far.
fn deflated(wire: Wire, payload: &[u8]) -> Vec<u8> {
    let far = match wire.0 {
        Role::Client => 256,
        Role::Server => usize::MAX,
    };
    let mut bytes = Vec::new();
    for part in payload.chunks(far) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // A vector takes everything.
        _ = encoder.write_all(part).and_then(|()| encoder.flush());
        bytes.extend(encoder.get_ref());
    }
    bytes.truncate(bytes.len().saturating_sub(4));
    bytes
}

fn valid(wire: Wire) -> Row {
    let random: Vec<u8> = (0..20_000_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let long = "linerate ".repeat(10_000);
    let binary = super::binary(&*random);
    Row {
        id: "X14",
        title: "compressed messages",
        section: "RFC 7692 §6, §7.2",
        required: "accept",
        cases: vec![
            case(
                wire,
                "hello",
                &[compressed(0x1, HELLO)],
                answers(&[hello()]),
            ),
            case(
                wire,
                "stored",
                &[compressed(0x1, STORED)],
                answers(&[hello()]),
            ),
            case(
                wire,
                "two-blocks",
                &[compressed(0x1, TWO_BLOCKS)],
                answers(&[hello()]),
            ),
            case(
                wire,
                "not-compressed",
                &[Frame::new(0x1, "Hello")],
                answers(&[hello()]),
            ),
            case(
                wire,
                "both-kinds",
                &[
                    compressed(0x1, HELLO),
                    Frame::new(0x1, "Hello"),
                    compressed(0x1, HELLO),
                ],
                answers(&[hello(), hello(), hello()]),
            ),
            case(
                wire,
                "binary-20000",
                &[compressed(0x2, deflated(wire, &random))],
                answers(&[binary]),
            ),
            case(
                wire,
                "text-90000",
                &[compressed(0x1, deflated(wire, long.as_bytes()))],
                answers(&[text(&*long)]),
            ),
        ],
    }
}

fn empty(wire: Wire) -> Row {
    Row {
        id: "X07",
        title: "empty messages, compressed",
        section: "RFC 7692 §7.2.3.6",
        required: "accept",
        cases: vec![
            case(
                wire,
                "one-byte",
                &[compressed(0x1, b"\x00")],
                answers(&[text("")]),
            ),
            case(
                wire,
                "fixed-block",
                &[compressed(0x1, b"\x02\x00")],
                answers(&[text("")]),
            ),
            case(
                wire,
                "empty-last-fragment",
                &[compressed(0x1, HELLO).unfinished(), Frame::new(0x0, "")],
                answers(&[hello()]),
            ),
            case(
                wire,
                "empty-first-fragment",
                &[compressed(0x1, "").unfinished(), Frame::new(0x0, HELLO)],
                answers(&[hello()]),
            ),
        ],
    }
}

fn finals(wire: Wire) -> Row {
    let twice = [compressed(0x1, FINAL), compressed(0x1, FINAL)];
    let then_plain = [compressed(0x1, FINAL), compressed(0x1, HELLO)];
    Row {
        id: "X10",
        title: "blocks that say that they are the last",
        section: "RFC 7692 §7.2.3.4",
        required: "accept",
        cases: vec![
            case(wire, "once", &[compressed(0x1, FINAL)], answers(&[hello()])),
            case(wire, "twice", &twice, answers(&[hello(), hello()])),
            case(
                wire,
                "then-another",
                &then_plain,
                answers(&[hello(), hello()]),
            ),
        ],
    }
}

fn takeover(wire: Wire) -> Row {
    // RFC 7692 §7.2.3.2: the second `Hello` refers to the first.
    let refers = compressed(0x1, b"\xf2\x00\x11\x00\x00");
    let both = [compressed(0x1, HELLO), refers];
    let bytes = wire.bytes(&both);
    let each = bytes.iter().map(|byte| vec![*byte]);
    let in_bytes = in_stages(
        "each-byte",
        each,
        Wait::Moment,
        answers(&[hello(), hello()]),
    );
    Row {
        id: "X04",
        title: "messages that refer to those before them",
        section: "RFC 7692 §7.2.3.2",
        required: "accept, where the window is agreed to be kept",
        cases: vec![
            keeping(case(wire, "both", &both, answers(&[hello(), hello()]))),
            keeping(in_bytes),
        ],
    }
}

fn reserved_bits(wire: Wire) -> Row {
    let mut cases = Vec::new();
    for opcode in [0x8, 0x9, 0xA] {
        let payload: &[u8] = if opcode == 0x8 { b"\x03\xe8" } else { b"x" };
        let name = format!("rsv1-{}", super::opcode_name(opcode));
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
        title: "reserved bits where a compressed message has none",
        section: "RFC 7692 §6; RFC 6455 §5.2",
        required: "fail the connection, 1002",
        cases,
    }
}

fn broken(wire: Wire) -> Row {
    let case = |name: &str, payload: &[u8]| {
        offering(
            EACH,
            in_stages(
                name,
                [wire.bytes(&[compressed(0x2, payload)])],
                Wait::Answer,
                fails(&[1002, 1003, 1007, 1008, 1011]),
            ),
        )
    };
    Row {
        id: "X03",
        title: "data that can't be inflated",
        section: "RFC 7692 §7.2.2; RFC 1951 §3.2",
        required: "fail the connection (the standard names no code; 1007 is usual)",
        cases: vec![
            case("reserved-block", b"\x07"),
            case("reserved-block-ff", b"\xff\xff\xff\xff"),
            case("distance-before-the-start", b"\xf2\x00\x11\x00\x00"),
            case("stored-length-wrong", b"\x00\x05\x00\x00\x00Hello\x00"),
            case("letters", b"this is not deflate"),
            case(
                "bad-code-lengths",
                b"\x05\xe0\xff\xff\xff\xff\xff\xff\xff\xff",
            ),
        ],
    }
}

fn not_text(wire: Wire) -> Row {
    let case = |name: &str, payload: &[u8]| {
        case(
            wire,
            name,
            &[compressed(0x1, deflated(wire, payload))],
            fails(&[1007]),
        )
    };
    let mut far = vec![b'a'; 40_000];
    far.push(0xFF);
    Row {
        id: "U08",
        title: "text that is no UTF-8 once it is inflated",
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

fn fragments(wire: Wire) -> Row {
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
    Row {
        id: "X11",
        title: "compressed messages in fragments",
        section: "RFC 7692 §6.1",
        required: "accept",
        cases: vec![
            case(wire, "two", &pieces(2), answers(&[hello()])),
            case(wire, "seven", &pieces(7), answers(&[hello()])),
            case(
                wire,
                "ping-between",
                &with_ping,
                answers(&[super::pong("?"), hello()]),
            ),
        ],
    }
}

fn windows(wire: Wire) -> Row {
    let offers = [
        "permessage-deflate; client_max_window_bits",
        "permessage-deflate; client_max_window_bits=15",
        "permessage-deflate; client_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=15",
        "permessage-deflate; server_max_window_bits=12; client_max_window_bits=12",
        "permessage-deflate; server_max_window_bits=9",
        "permessage-deflate; server_max_window_bits=8",
        "permessage-deflate; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; server_max_window_bits=\"10\"",
        "permessage-deflate; server_max_window_bits=7, permessage-deflate",
        "x-unknown, permessage-deflate",
    ];
    let frames = [
        compressed(0x1, HELLO),
        compressed(0x1, deflated(wire, &[b'a'; 5_000])),
    ];
    let both = [hello(), text([b'a'; 5_000])];
    let case = |(index, offer): (usize, &'static str)| {
        let name = format!("offer-{index}");
        offering(offer, wire.case(name, &frames, answers(&both)))
    };
    Row {
        id: "X05",
        title: "offers with all parameters",
        section: "RFC 7692 §7.1",
        required: "accept or decline; what is agreed on works",
        cases: offers.into_iter().enumerate().map(case).collect(),
    }
}

/// Answers that a client must not accept, whatever it has offered.
fn bad_answers() -> Row {
    let answers = [
        (
            "client-bits-without-value",
            "permessage-deflate; client_max_window_bits",
        ),
        (
            "client-bits-7",
            "permessage-deflate; client_max_window_bits=7",
        ),
        (
            "client-bits-16",
            "permessage-deflate; client_max_window_bits=16",
        ),
        (
            "client-bits-abc",
            "permessage-deflate; client_max_window_bits=abc",
        ),
        (
            "server-bits-without-value",
            "permessage-deflate; server_max_window_bits",
        ),
        (
            "server-bits-7",
            "permessage-deflate; server_max_window_bits=7",
        ),
        (
            "server-bits-16",
            "permessage-deflate; server_max_window_bits=16",
        ),
        (
            "server-bits-08",
            "permessage-deflate; server_max_window_bits=08",
        ),
        ("unknown", "permessage-deflate; unknown"),
        (
            "takeover-with-value",
            "permessage-deflate; server_no_context_takeover=1",
        ),
        (
            "takeover-twice",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        ),
        ("two-answers", "permessage-deflate, permessage-deflate"),
        ("another-beside", "permessage-deflate, x-unknown"),
    ];
    let case = |(name, answer): (&str, &str)| super::client::agreeing(name, answer);
    Row {
        id: "X06",
        title: "answers to an offer that are malformed, or agree to what was not offered",
        section: "RFC 7692 §5.1, §7, §7.1; RFC 6455 §4.1",
        required: "fail the connection, and send nothing",
        cases: answers.into_iter().map(case).collect(),
    }
}

/// Offers that a server must decline.
fn bad_offers() -> Row {
    let offers = [
        ("client-bits-7", "client_max_window_bits=7"),
        ("client-bits-16", "client_max_window_bits=16"),
        ("client-bits-08", "client_max_window_bits=08"),
        ("client-bits-abc", "client_max_window_bits=abc"),
        ("server-bits-7", "server_max_window_bits=7"),
        ("server-bits-16", "server_max_window_bits=16"),
        ("server-bits-without-value", "server_max_window_bits"),
        ("server-bits-010", "server_max_window_bits=010"),
        ("unknown", "unknown"),
        ("takeover-with-value", "server_no_context_takeover=1"),
        (
            "takeover-twice",
            "server_no_context_takeover; server_no_context_takeover",
        ),
        (
            "client-bits-twice",
            "client_max_window_bits; client_max_window_bits=10",
        ),
    ];
    let case = |(name, parameters): (&str, &str)| {
        let line = format!("Sec-WebSocket-Extensions: {OFFER}; {parameters}\r\n");
        super::handshake::raw(name, request(&line), Expect::Decline)
    };
    Row {
        id: "X06",
        title: "offers that are malformed",
        section: "RFC 7692 §7, §7.1",
        required: "decline the offer",
        cases: offers.into_iter().map(case).collect(),
    }
}
