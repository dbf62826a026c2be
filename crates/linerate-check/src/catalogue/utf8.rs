//! Text that is UTF-8, and text that is not (RFC 6455 §5.6, §8.1; RFC 3629).

use super::{Wire, fails, fails_at_once, in_stages, text};
use crate::{
    case::{Case, Expect, Row, Wait},
    frame::Frame,
};

/// How many ASCII bytes precede a sequence: the edges of the blocks in which validators work.
const BEFORE: [usize; 5] = [0, 1, 15, 31, 63];

/// Overlong forms.
const OVERLONG: [&[u8]; 8] = [
    b"\xc0\x80",
    b"\xc0\xaf",
    b"\xc1\xbf",
    b"\xe0\x80\x80",
    b"\xe0\x80\xaf",
    b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\x80",
    b"\xf0\x8f\xbf\xbf",
];

/// Surrogates, alone and in pairs.
const SURROGATES: [&[u8]; 6] = [
    b"\xed\xa0\x80",
    b"\xed\xad\xbf",
    b"\xed\xae\x80",
    b"\xed\xb0\x80",
    b"\xed\xbf\xbf",
    b"\xed\xa0\x80\xed\xb0\x80",
];

/// Code points beyond U+10FFFF, and bytes that occur in no sequence.
const BEYOND: [&[u8]; 9] = [
    b"\xf4\x90\x80\x80",
    b"\xf4\xbf\xbf\xbf",
    b"\xf5\x80\x80\x80",
    b"\xf7\xbf\xbf\xbf",
    b"\xf8\x88\x80\x80\x80",
    b"\xfb\xbf\xbf\xbf\xbf",
    b"\xfc\x84\x80\x80\x80\x80",
    b"\xfe",
    b"\xff",
];

/// Lone continuation bytes, and sequences that are interrupted by another byte.
const TORN: [&[u8]; 9] = [
    b"\x80",
    b"\xbf",
    b"\x80\x80",
    b"\xc3a",
    b"\xe2\x82a",
    b"\xe2a\x82",
    b"\xf0\x9f\x91a",
    b"\xf0\x9fa\x91",
    b"\xc3\xc3\xa4",
];

/// Sequences of two, three and four bytes that are incomplete.
const UNFINISHED: [&[u8]; 6] = [
    b"\xc3",
    b"\xe2",
    b"\xe2\x82",
    b"\xf0",
    b"\xf0\x9f",
    b"\xf0\x9f\x91",
];

/// The first and the last code point of each length, and those next to the surrogates.
const EDGES: [char; 11] = [
    '\0',
    '\u{7f}',
    '\u{80}',
    '\u{7ff}',
    '\u{800}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{fffd}',
    '\u{ffff}',
    '\u{10000}',
    '\u{10ffff}',
];

const SECTION: &str = "RFC 6455 §8.1";

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        malformed(wire, "U01", "overlong forms", &OVERLONG),
        malformed(wire, "U02", "surrogates", &SURROGATES),
        malformed(
            wire,
            "U03",
            "code points beyond U+10FFFF, and bytes that occur in no sequence",
            &BEYOND,
        ),
        torn(wire),
        split(wire),
        early(wire),
        binary_is_free(wire),
    ]
}

fn malformed(wire: Wire, id: &'static str, title: &'static str, sequences: &[&[u8]]) -> Row {
    let mut cases = Vec::new();
    for sequence in sequences {
        for before in BEFORE {
            let name = format!("{}-at-{before}", hex(sequence));
            let frame = Frame::new(0x1, padded(before, sequence, 3));
            cases.push(wire.case(name, &[frame], fails(&[1007])));
        }
    }
    Row {
        id,
        title,
        section: SECTION,
        required: "fail the connection, 1007",
        cases,
    }
}

fn torn(wire: Wire) -> Row {
    let mut row = malformed(
        wire,
        "U04",
        "lone continuation bytes and incomplete sequences",
        &TORN,
    );
    for sequence in UNFINISHED {
        for before in [0, 15, 63] {
            let payload = padded(before, sequence, 0);
            let name = format!("{}-at-the-end-after-{before}", hex(sequence));
            row.cases
                .push(wire.case(name, &[Frame::new(0x1, payload)], fails(&[1007])));
        }
        let first = Frame::new(0x1, sequence).unfinished();
        let name = format!("{}-then-empty-end", hex(sequence));
        row.cases
            .push(wire.case(name, &[first, Frame::new(0x0, "")], fails(&[1007])));
    }
    row
}

/// Code points that are split over fragments and segments.
fn split(wire: Wire) -> Row {
    let mut cases = Vec::new();
    let all: String = EDGES.iter().collect();
    let expect = || Expect::Answers(vec![text(&*all)]);
    cases.push(wire.case("edges", &[Frame::new(0x1, &*all)], expect()));
    for at in 1..all.len() {
        let (one, two) = all.as_bytes().split_at(at);
        let frames = [Frame::new(0x1, one).unfinished(), Frame::new(0x0, two)];
        cases.push(wire.case(format!("fragments-at-{at}"), &frames, expect()));
    }
    let bytes = wire.bytes(&[Frame::new(0x1, &*all)]);
    let each = bytes.iter().map(|byte| vec![*byte]);
    cases.push(in_stages(
        "each-byte-a-segment",
        each,
        Wait::Moment,
        expect(),
    ));
    cases.push(wire.case("each-byte-a-fragment", &each_byte(all.as_bytes()), expect()));
    for before in [15, 31, 63, 127] {
        let long = "a".repeat(before) + &"\u{1f44b}\u{20ac}\u{e4}".repeat(30);
        let expect = Expect::Answers(vec![text(&*long)]);
        cases.push(wire.case(
            format!("long-after-{before}"),
            &[Frame::new(0x1, &*long)],
            expect,
        ));
    }
    Row {
        id: "U05",
        title: "code points at all boundaries, split at every byte",
        section: "RFC 6455 §5.6",
        required: "accept",
        cases,
    }
}

fn each_byte(payload: &[u8]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = payload
        .iter()
        .enumerate()
        .map(|(index, byte)| Frame::new(u8::from(index == 0), [*byte]).unfinished())
        .collect();
    frames.push(Frame::new(0x0, ""));
    frames
}

/// Text that is known to be invalid before its message or frame is complete.
fn early(wire: Wire) -> Row {
    let mut cases: Vec<Case> = Vec::new();
    let sequences: [&[u8]; 5] = [b"\xff", b"\xc0\x80", b"\xed\xa0", b"\xf4\x90", b"\x80"];
    for sequence in sequences {
        let first = Frame::new(0x1, padded(5, sequence, 0)).unfinished();
        cases.push(wire.staged(
            format!("{}-in-first-fragment", hex(sequence)),
            &[&[first], &[Frame::new(0x0, "")]],
            Wait::Answer,
            fails_at_once(&[1007]),
        ));
        let whole = wire.bytes(&[Frame::new(0x1, padded(5, sequence, 40))]);
        let (bad, rest) = whole.split_at(whole.len() - 40);
        cases.push(in_stages(
            format!("{}-in-unfinished-frame", hex(sequence)),
            [bad.to_vec(), rest.to_vec()],
            Wait::Answer,
            fails_at_once(&[1007]),
        ));
    }
    Row {
        id: "U06",
        title: "text that is known to be invalid before it is complete",
        section: SECTION,
        required: "fail the connection, 1007, preferably at once",
        cases,
    }
}

fn binary_is_free(wire: Wire) -> Row {
    let case = |name: &str, payload: &[u8]| {
        let expect = Expect::Answers(vec![super::binary(payload)]);
        wire.case(name, &[Frame::new(0x2, payload)], expect)
    };
    Row {
        id: "U09",
        title: "binary messages that are not UTF-8",
        section: "RFC 6455 §5.6",
        required: "accept",
        cases: vec![
            case("ff", b"\xff"),
            case("surrogate", b"\xed\xa0\x80"),
            case("unfinished", b"\xf0\x9f"),
        ],
    }
}

/// Returns a sequence with `before` letters before it and `behind` letters after it.
fn padded(before: usize, sequence: &[u8], behind: usize) -> Vec<u8> {
    [&vec![b'a'; before][..], sequence, &vec![b'z'; behind]].concat()
}

fn hex(bytes: &[u8]) -> String {
    crate::outcome::hex(bytes, usize::MAX)
}
