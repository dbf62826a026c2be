//! Valid input that every endpoint has to accept (RFC 6455 §5, §6). An endpoint that refuses
//! everything fails here.

use super::{Wire, binary, in_stages, opcode_name, pong, text};
use crate::{
    answers::Answer,
    case::{Case, Expect, Row, Wait},
    frame::Frame,
};

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        messages(wire),
        fragments(wire),
        pings(wire),
        between_fragments(wire),
        many(wire),
        cut(wire),
        trivial(wire),
    ]
}

fn messages(wire: Wire) -> Row {
    let sizes = [0, 1, 125, 126, 127, 128, 4_096, 65_535, 65_536, 70_000];
    let case = |opcode: u8, bytes: usize| {
        let payload = vec![b'a'; bytes];
        let expect = Expect::Answers(vec![Answer::new(opcode, payload.clone())]);
        let name = format!("{}-{bytes}", opcode_name(opcode));
        wire.case(name, &[Frame::new(opcode, payload)], expect)
    };
    Row {
        id: "V01",
        title: "unfragmented messages of all length forms",
        section: "RFC 6455 §5.2",
        required: "the same message comes back",
        cases: sizes
            .into_iter()
            .flat_map(|bytes| [case(0x1, bytes), case(0x2, bytes)])
            .collect(),
    }
}

fn fragments(wire: Wire) -> Row {
    let payload = b"fragmented message";
    let mut cases = Vec::new();
    for opcode in [0x1, 0x2] {
        for pieces in [2, 3, payload.len()] {
            let frames = fragmented(opcode, payload, payload.len().div_ceil(pieces));
            let answer = Answer::new(opcode, payload);
            let name = format!("{}-in-{pieces}", opcode_name(opcode));
            cases.push(wire.case(name, &frames, Expect::Answers(vec![answer])));
        }
    }
    cases.extend(empty_fragments(wire));
    Row {
        id: "V02",
        title: "messages in fragments",
        section: "RFC 6455 §5.4",
        required: "one message comes back",
        cases,
    }
}

/// Returns a message in fragments of `bytes` bytes.
fn fragmented(opcode: u8, payload: &[u8], bytes: usize) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let count = payload.chunks(bytes).count();
    for (index, chunk) in payload.chunks(bytes).enumerate() {
        let frame = Frame::new(if index == 0 { opcode } else { 0x0 }, chunk);
        frames.push(if index + 1 == count {
            frame
        } else {
            frame.unfinished()
        });
    }
    frames
}

fn empty_fragments(wire: Wire) -> Vec<Case> {
    let answers = |payload: &str| Expect::Answers(vec![text(payload)]);
    let first = |payload: &str| Frame::new(0x1, payload).unfinished();
    let next = |payload: &str| Frame::new(0x0, payload).unfinished();
    let last = |payload: &str| Frame::new(0x0, payload);
    let middle = [first(""), next("Spam"), last("")];
    let around = [first("Sp"), next(""), next(""), last("am")];
    vec![
        wire.case("all-empty", &[first(""), next(""), last("")], answers("")),
        wire.case("only-middle", &middle, answers("Spam")),
        wire.case("first-empty", &[first(""), last("Spam")], answers("Spam")),
        wire.case("last-empty", &[first("Spam"), last("")], answers("Spam")),
        wire.case("middle-empty", &around, answers("Spam")),
    ]
}

fn pings(wire: Wire) -> Row {
    let sizes = [0, 1, 4, 124, 125];
    let ping = |bytes: usize| {
        let payload = vec![0xFE; bytes];
        let expect = Expect::Answers(vec![pong(payload.clone())]);
        wire.case(format!("ping-{bytes}"), &[Frame::new(0x9, payload)], expect)
    };
    let unasked = |name: &str, payload: &str| {
        let frames = [Frame::new(0xA, payload), Frame::new(0x1, "Spam")];
        wire.case(name, &frames, Expect::Answers(vec![text("Spam")]))
    };
    let mut cases: Vec<Case> = sizes.into_iter().map(ping).collect();
    let several: Vec<Frame> = (0..10).map(|n| Frame::new(0x9, [n])).collect();
    let all = (0..10).map(|n| pong([n])).collect();
    cases.push(wire.case("ten-pings", &several, Expect::Answers(all)));
    cases.push(unasked("pong-nobody-asked-for", "?"));
    cases.push(unasked("empty-pong-nobody-asked-for", ""));
    Row {
        id: "V03",
        title: "Pings and Pongs",
        section: "RFC 6455 §5.5.2, §5.5.3",
        required: "a Pong with the payload of the last Ping; Pongs are not answered",
        cases,
    }
}

fn between_fragments(wire: Wire) -> Row {
    let first = || Frame::new(0x1, "Sp").unfinished();
    let ping = || Frame::new(0x9, "?");
    let last = || Frame::new(0x0, "am");
    let pong_frame = Frame::new(0xA, "?");
    let close = Frame::new(0x8, 1000_u16.to_be_bytes());
    let staged = |name: &str, rest: &[Frame], expect| {
        wire.staged(name, &[&[first(), ping()], rest], Wait::Answer, expect)
    };
    let (message, answer) = (
        Expect::Answers(vec![text("Spam")]),
        Expect::Answers(vec![pong("?")]),
    );
    let closed = Expect::Close {
        codes: vec![1000],
        before: Vec::new(),
    };
    let both = || Expect::Answers(vec![pong("?"), text("Spam")]);
    Row {
        id: "F13",
        title: "control frames between fragments",
        section: "RFC 6455 §5.4, §5.5",
        required: "they are answered, and the message is complete",
        cases: vec![
            wire.case("ping-at-once", &[first(), ping(), last()], both()),
            staged("ping-apart", &[last()], both()),
            wire.case("pong", &[first(), pong_frame, last()], message),
            wire.case("close", &[first(), close, last()], closed),
            staged("pong-before-the-message", &[], answer),
        ],
    }
}

fn many(wire: Wire) -> Row {
    let many: Vec<Frame> = (0..100).map(|n| Frame::new(0x1, format!("{n}"))).collect();
    let all = (0..100).map(|n| text(format!("{n}"))).collect();
    let mixed = [(0x1, "a"), (0x2, "b"), (0x1, "")];
    let mixed = mixed.map(|(opcode, payload)| Frame::new(opcode, payload));
    let answers = vec![text("a"), binary("b"), text("")];
    Row {
        id: "V04",
        title: "many messages in one segment",
        section: "RFC 6455 §5.2",
        required: "all of them come back, in order",
        cases: vec![
            wire.case("hundred", &many, Expect::Answers(all)),
            wire.case("mixed", &mixed, Expect::Answers(answers)),
        ],
    }
}

/// The same bytes, split at every position that leaves the parser in a different state.
fn cut(wire: Wire) -> Row {
    let frames = [
        Frame::new(0x1, "gr\u{f6}").unfinished(),
        Frame::new(0x9, "?"),
        Frame::new(0x0, "\u{df}er"),
        Frame::new(0x2, vec![7; 130]),
    ];
    let bytes = wire.bytes(&frames);
    let answers = [pong("?"), text("gr\u{f6}\u{df}er"), binary(vec![7; 130])];
    let expect = || Expect::Answers(answers.to_vec());
    let heads = bytes.len() - 128;
    let mut cases: Vec<Case> = (1..heads)
        .map(|at| {
            let (one, two) = bytes.split_at(at);
            let parts = [one.to_vec(), two.to_vec()];
            in_stages(format!("at-{at}"), parts, Wait::Moment, expect())
        })
        .collect();
    let each = bytes.iter().map(|byte| vec![*byte]);
    cases.push(in_stages("each-byte", each, Wait::Moment, expect()));
    Row {
        id: "F24",
        title: "frames split at every byte of their headers",
        section: "RFC 6455 §5.2",
        required: "the same result as when not split",
        cases,
    }
}

fn trivial(wire: Wire) -> Row {
    let key = |name: &str, key: [u8; 4]| {
        let frame = Frame::new(0x1, "Spam").with_key(key);
        wire.case(name, &[frame], Expect::Answers(vec![text("Spam")]))
    };
    let empty = Frame::new(0x2, "").with_key([1, 2, 3, 4]);
    let nothing = Expect::Answers(vec![binary("")]);
    Row {
        id: "F25",
        title: "masking keys of all zeros and all ones, and empty frames",
        section: "RFC 6455 §5.3",
        required: "accept",
        cases: vec![
            key("key-zero", [0; 4]),
            key("key-ones", [0xFF; 4]),
            key("key-of-one-bit", [0, 0, 0, 1]),
            wire.case("empty-with-key", &[empty], nothing),
        ],
    }
}
