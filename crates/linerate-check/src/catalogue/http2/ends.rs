//! How a WebSocket on a stream ends: END_STREAM corresponds to FIN over TCP, and RST_STREAM to RST
//! (RFC 8441 §5).

use super::{Maker, masked, spam, spams};
use crate::{
    case::{Expect, Row},
    catalogue::text,
    frame::Frame,
    http2::{
        Fate,
        frame::{DATA, END_STREAM, GOAWAY, frame},
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![closing(maker), torn(maker), leaving(maker)]
}

fn closing(maker: Maker<'_>) -> Row {
    let close = masked(&[Frame::new(0x8, 1000_u16.to_be_bytes())]);
    let both = masked(&[
        Frame::new(0x1, "Spam"),
        Frame::new(0x8, 1000_u16.to_be_bytes()),
    ]);
    let closes = |before| Fate::Closes {
        codes: &[1000],
        before,
    };
    let case = |name: &str, flags: u8, bytes: &[u8], fate: Fate| {
        let parts = vec![maker.open(1), frame(DATA, flags, 1, bytes)];
        maker.beside(name, parts, vec![fate])
    };
    let nothing = masked(&[Frame::new(0x8, "")]);
    let without_code = Fate::Closes {
        codes: &[0, 1000],
        before: Vec::new(),
    };
    Row {
        id: "S27",
        title: "WebSockets that are closed",
        section: "RFC 6455 §5.5.1, §7.1.1; RFC 8441 §5",
        required: "answer the Close frame, end the stream, and keep serving the others",
        cases: vec![
            case("close", 0, &close, closes(Vec::new())),
            case("close-and-end", END_STREAM, &close, closes(Vec::new())),
            case("close-without-a-code", 0, &nothing, without_code),
            case("behind-a-message", 0, &both, closes(vec![text("Spam")])),
            case(
                "behind-a-message-and-end",
                END_STREAM,
                &both,
                closes(vec![text("Spam")]),
            ),
        ],
    }
}

fn torn(maker: Maker<'_>) -> Row {
    let message = masked(&[Frame::new(0x1, "Spam")]);
    let case = |cut: usize| {
        let end = frame(DATA, END_STREAM, 1, &message[..cut]);
        maker.beside(
            format!("at-{cut}"),
            vec![maker.open(1), end],
            vec![Fate::Ends],
        )
    };
    let unfinished = masked(&[Frame::new(0x1, "Spam").unfinished()]);
    let unfinished = frame(DATA, END_STREAM, 1, unfinished);
    let mut cases: Vec<_> = (0..message.len()).map(case).collect();
    cases.push(maker.beside(
        "behind-a-fragment",
        vec![maker.open(1), unfinished],
        vec![Fate::Ends],
    ));
    Row {
        id: "S09",
        title: "streams that end in the middle of a message",
        section: "RFC 8441 §5; RFC 6455 §7.1.4, §7.1.5",
        required: "end the stream, and deliver nothing",
        cases,
    }
}

fn leaving(maker: Maker<'_>) -> Row {
    let goaway = |code: u32| frame(GOAWAY, 0, 0, [[0; 4], code.to_be_bytes()].concat());
    let parts = vec![maker.open(1), spam(1), [goaway(0), spam(1)].concat()];
    let twice = vec![maker.open(1), [goaway(0), goaway(0), spam(1)].concat()];
    let fate = Fate::Answers(vec![text("Spam"), text("Spam")]);
    Row {
        id: "S28",
        title: "a client that sends GOAWAY",
        section: "RFC 9113 §6.8",
        required: "keep serving the existing streams",
        cases: vec![
            maker.case("behind-a-message", parts, Expect::Streams(vec![(1, fate)])),
            maker.case("twice", twice, Expect::Streams(vec![(1, spams())])),
        ],
    }
}
