//! The closing handshake (RFC 6455 §5.5.1, §7).

use super::{Wire, fails, text};
use crate::{
    case::{Case, Expect, Row, Wait},
    frame::Frame,
};

/// Codes that must not be sent or that are not registered (RFC 6455 §7.4, IANA).
const ILLEGAL: [u16; 25] = [
    0, 1, 500, 999, 1004, 1005, 1006, 1015, 1016, 1017, 1050, 1100, 1500, 1999, 2000, 2001, 2500,
    2999, 5000, 5001, 9999, 10_000, 32_768, 60_000, 65_535,
];

/// Codes that may be sent: those of the standard, registered codes, and those for libraries and
/// applications.
const LEGAL: [u16; 17] = [
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 3000, 3500, 3999, 4000,
    4999,
];

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        plain(wire),
        legal_codes(wire),
        one_byte(wire),
        illegal_codes(wire),
        bad_reasons(wire),
        afterwards(wire),
    ]
}

/// Creates a Close frame.
fn close(code: u16, reason: &[u8]) -> Frame {
    Frame::new(0x8, [&code.to_be_bytes(), reason].concat())
}

fn answered(codes: &[u16]) -> Expect {
    Expect::Close {
        codes: codes.to_vec(),
        before: Vec::new(),
    }
}

fn plain(wire: Wire) -> Row {
    let longest = "r".repeat(123);
    let reason = |name: &str, reason: &str| {
        wire.case(name, &[close(1000, reason.as_bytes())], answered(&[1000]))
    };
    let behind = Expect::Close {
        codes: vec![1000],
        before: vec![text("Spam")],
    };
    Row {
        id: "V05",
        title: "the closing handshake",
        section: "RFC 6455 §5.5.1, §7.1.1",
        required: "answer with a Close frame, then end the connection",
        cases: vec![
            wire.case("without-code", &[Frame::new(0x8, "")], answered(&[0, 1000])),
            wire.case("1000", &[close(1000, b"")], answered(&[1000])),
            reason("reason", "going"),
            reason("reason-of-123-bytes", &longest),
            reason("reason-beyond-ascii", "Tsch\u{fc}\u{df} \u{1f44b}"),
            wire.case(
                "behind-a-message",
                &[Frame::new(0x1, "Spam"), close(1000, b"")],
                behind,
            ),
        ],
    }
}

fn legal_codes(wire: Wire) -> Row {
    let case = |code: u16| {
        wire.case(
            format!("code-{code}"),
            &[close(code, b"")],
            answered(&[code]),
        )
    };
    Row {
        id: "V06",
        title: "close codes that may be sent",
        section: "RFC 6455 §5.5.1, §7.4",
        required: "answer with a Close frame with the same code, then end the connection",
        cases: LEGAL.into_iter().map(case).collect(),
    }
}

fn one_byte(wire: Wire) -> Row {
    let case = |byte: u8| {
        wire.case(
            format!("byte-{byte:02x}"),
            &[Frame::new(0x8, [byte])],
            fails(&[1002]),
        )
    };
    Row {
        id: "F20",
        title: "a Close frame of one byte",
        section: "RFC 6455 §5.5.1",
        required: "a body MUST begin with a two-byte code: fail, 1002",
        cases: vec![case(0x00), case(0x03), case(0xFF)],
    }
}

fn illegal_codes(wire: Wire) -> Row {
    let case = |code: u16| wire.case(format!("code-{code}"), &[close(code, b"")], fails(&[1002]));
    let mut cases: Vec<Case> = ILLEGAL.into_iter().map(case).collect();
    for code in [999, 1005, 1006, 1015] {
        let frames = [close(code, b"reason")];
        cases.push(wire.case(format!("code-{code}-and-reason"), &frames, fails(&[1002])));
    }
    Row {
        id: "F21",
        title: "close codes that must not be sent",
        section: "RFC 6455 §7.4.1, §7.4.2",
        required: "fail, 1002; the code is never sent back",
        cases,
    }
}

fn bad_reasons(wire: Wire) -> Row {
    let reasons: [(&str, &[u8]); 9] = [
        ("ff", b"\xff"),
        ("lone-continuation", b"ok \x80"),
        ("overlong", b"\xc0\xaf"),
        ("surrogate", b"\xed\xa0\x80"),
        ("beyond-unicode", b"\xf4\x90\x80\x80"),
        ("ends-inside-of-two", b"ok \xc3"),
        ("ends-inside-of-three", b"\xe2\x82"),
        ("ends-inside-of-four", b"\xf0\x9f\x91"),
        ("iso-8859-1", b"Tsch\xfc\xdf"),
    ];
    let case = |(name, reason): (&str, &[u8])| {
        wire.case(name, &[close(1000, reason)], fails(&[1007, 1002]))
    };
    let mut cases: Vec<Case> = reasons.into_iter().map(case).collect();
    let mut split = vec![b'r'; 122];
    split.push(0xC3);
    cases.push(case(("split-at-byte-123", &split)));
    Row {
        id: "F22",
        title: "close reasons that are not UTF-8",
        section: "RFC 6455 §5.5.1, §8.1",
        required: "fail, 1007 (or 1002)",
        cases,
    }
}

fn afterwards(wire: Wire) -> Row {
    let frames: [(&str, Vec<Frame>); 7] = [
        ("message", vec![Frame::new(0x1, "late")]),
        ("ping", vec![Frame::new(0x9, "late")]),
        ("close", vec![close(1000, b"")]),
        ("other-close", vec![close(1001, b"")]),
        (
            "three-closes",
            vec![close(1000, b""), close(1000, b""), close(1000, b"")],
        ),
        ("illegal", vec![Frame::new(0x3, "late")]),
        (
            "all",
            vec![
                Frame::new(0x1, "late"),
                Frame::new(0x9, "late"),
                close(1000, b""),
            ],
        ),
    ];
    let mut cases = Vec::new();
    for (name, late) in frames {
        let together = [&[close(1000, b"")][..], &late].concat();
        cases.push(wire.case(name, &together, answered(&[1000])));
        let first = [close(1000, b"")];
        let stages: [&[Frame]; 2] = [&first, &late];
        let name = format!("{name}-apart");
        cases.push(wire.staged(name, &stages, Wait::Moment, answered(&[1000])));
    }
    Row {
        id: "F23",
        title: "what follows a Close frame",
        section: "RFC 6455 §1.4, §5.5.1",
        required: "discard it: answer with one Close frame and nothing else",
        cases,
    }
}
