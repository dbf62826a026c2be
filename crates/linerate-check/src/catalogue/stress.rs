//! Floods and decompression bombs of limited size: an endpoint may accept them or end the
//! connection, and has to keep working afterwards (RFC 6455 §10.4).

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

use super::{Wire, binary, in_stages, pong, text};
use crate::{
    answers::Answer,
    case::{Case, Expect, Opening, Row, Wait},
    frame::Frame,
};

/// The number of frames in a flood.
const FRAMES: usize = 100_000;

/// The number of messages in a flood of messages, all of which are echoed.
const MESSAGES: usize = 5_000;

/// The inflated size of a bomb: more than most endpoints accept.
const BOMB_BYTES: usize = 96 << 20;

const SECTION: &str = "RFC 6455 §10.4";
const REQUIRED: &str = "accept it or close (1008, 1009), and serve others afterwards";

/// Returns the rows. Building them takes a moment.
pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![
        fragments(wire),
        control_frames(wire),
        messages(wire),
        bombs(wire),
    ]
}

fn survives(wire: Wire, name: &str, frames: &[Frame], answers: Vec<Answer>) -> Case {
    wire.case(name, frames, Expect::Survive(answers))
}

fn fragments(wire: Wire) -> Row {
    let flood = |payload: &'static [u8]| -> Vec<Frame> {
        let first = Frame::new(0x2, payload).unfinished();
        let next = Frame::new(0x0, payload).unfinished();
        let mut frames = vec![first];
        frames.resize(FRAMES, next);
        frames.push(Frame::new(0x0, payload));
        frames
    };
    let whole = vec![binary(vec![b'x'; FRAMES + 1])];
    Row {
        id: "R16",
        title: "a message in very many fragments",
        section: SECTION,
        required: REQUIRED,
        cases: vec![
            survives(wire, "of-one-byte", &flood(b"x"), whole),
            survives(wire, "empty", &flood(b""), vec![binary("")]),
        ],
    }
}

fn control_frames(wire: Wire) -> Row {
    let pings = vec![Frame::new(0x9, vec![b'?'; 125]); FRAMES / 5];
    let mut pongs = vec![Frame::new(0xA, "?"); FRAMES];
    pongs.push(Frame::new(0x1, "Spam"));
    Row {
        id: "R18",
        title: "very many control frames",
        section: "RFC 6455 §5.5.3, §10.4",
        required: REQUIRED,
        cases: vec![
            survives(wire, "pings", &pings, vec![pong(vec![b'?'; 125])]),
            survives(wire, "pongs", &pongs, vec![text("Spam")]),
        ],
    }
}

fn messages(wire: Wire) -> Row {
    let empty = vec![Frame::new(0x1, ""); MESSAGES];
    let long = vec![b'x'; 8 << 20];
    let one = Frame::new(0x2, &*long);
    Row {
        id: "R26",
        title: "very many messages, and long ones",
        section: SECTION,
        required: REQUIRED,
        cases: vec![
            survives(wire, "empty", &empty, vec![text(""); MESSAGES]),
            survives(wire, "of-8-mib", &[one], vec![binary(long)]),
        ],
    }
}

fn bombs(wire: Wire) -> Row {
    let bomb = bomb();
    let whole = Frame::new(0x2, &*bomb).with_rsv(4);
    let half = bomb.len() / 2;
    let fragments = [
        Frame::new(0x2, &bomb[..half]).with_rsv(4).unfinished(),
        Frame::new(0x0, &bomb[half..]),
    ];
    let case = |name: &str, frames: &[Frame]| {
        let bytes = [wire.bytes(frames)];
        let mut case = in_stages(name, bytes, Wait::Answer, Expect::Survive(Vec::new()));
        case.input.opening = Opening::Extended("permessage-deflate");
        case
    };
    Row {
        id: "R01",
        title: "messages that inflate a thousandfold",
        section: "RFC 6455 §10.4; RFC 7692 §8",
        required: "close (1009) once the limit is reached, and serve others afterwards",
        cases: vec![case("whole", &[whole]), case("in-fragments", &fragments)],
    }
}

fn bomb() -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..BOMB_BYTES / zeros.len() {
        // Writing to a vector cannot fail.
        _ = encoder.write_all(&zeros);
    }
    _ = encoder.flush();
    let mut bytes = encoder.get_ref().clone();
    bytes.truncate(bytes.len().saturating_sub(4));
    bytes
}
