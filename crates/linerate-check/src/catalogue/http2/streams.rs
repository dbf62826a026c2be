//! The life cycle of streams: reset, ended, and used after they are closed (RFC 9113 §5.1).

use super::{Maker, headers, masked, reset, spam, spams};
use crate::{
    case::{Expect, Row},
    frame::Frame,
    http2::{
        Fate,
        frame::{
            CANCEL, CONTINUATION, DATA, END_HEADERS, END_STREAM, FLOW_CONTROL_ERROR,
            FRAME_SIZE_ERROR, GOAWAY, HEADERS, PING, PROTOCOL_ERROR, RST_STREAM, STREAM_CLOSED,
            WINDOW_UPDATE, frame,
        },
        hpack::block,
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![
        given_up(maker),
        windows(maker),
        continuations(maker),
        misplaced(maker),
        identifiers(maker),
        unmasked(maker),
    ]
}

fn given_up(maker: Maker<'_>) -> Row {
    let case = |name: &str, parts: Vec<Vec<u8>>, next: u32| {
        let parts = [parts, vec![maker.open(next), spam(next)]].concat();
        maker.case(name, parts, Expect::Streams(vec![(next, spams())]))
    };
    let open_and_reset = [maker.open(1), reset(1)].concat();
    let behind = vec![maker.open(1), [spam(1), reset(1)].concat()];
    let ten = (0..10).map(|index| [maker.open(1 + 2 * index), reset(1 + 2 * index)].concat());
    let torn = frame(DATA, 0, 1, &masked(&[Frame::new(0x1, "Spam")])[..7]);
    let torn = vec![maker.open(1), torn, reset(1)];
    Row {
        id: "S01",
        title: "streams that the client resets",
        section: "RFC 9113 §5.4.2, §6.4",
        required: "keep serving the others",
        cases: vec![
            case("before-the-answer", vec![open_and_reset], 3),
            case("open", vec![maker.open(1), reset(1)], 3),
            case("in-the-middle-of-a-frame", torn, 3),
            case("behind-a-message", behind, 3),
            case("ten", vec![ten.collect::<Vec<_>>().concat()], 21),
            case("twice", vec![maker.open(1), reset(1).repeat(2)], 3),
        ],
    }
}

fn windows(maker: Maker<'_>) -> Row {
    let update = |stream: u32, bytes: u32| frame(WINDOW_UPDATE, 0, stream, bytes.to_be_bytes());
    let stream = |name: &str, bytes: u32, codes: &'static [u32]| {
        let parts = vec![maker.open(1), update(1, bytes)];
        maker.beside(name, parts, vec![Fate::Reset(codes)])
    };
    let (protocol, flow) = (&[PROTOCOL_ERROR], &[FLOW_CONTROL_ERROR]);
    // Left to h2, the library of linerate and of many other servers.
    let size = &[FRAME_SIZE_ERROR, PROTOCOL_ERROR];
    let sized = |name: &str, stream: u32, payload: &[u8]| {
        maker.fatal(name, frame(WINDOW_UPDATE, 0, stream, payload), size)
    };
    let most = 0x7FFF_FFFF;
    Row {
        id: "S02",
        title: "invalid changes of windows",
        section: "RFC 9113 §6.9, §6.9.1",
        required: "reset the stream, or end the connection if it is the connection's window; \
            PROTOCOL_ERROR in place of FRAME_SIZE_ERROR, as h2 answers, is accepted",
        cases: vec![
            stream("stream-by-nothing", 0, protocol),
            stream("stream-beyond-the-most", most, flow),
            maker.fatal("connection-by-nothing", update(0, 0), protocol),
            maker.fatal("connection-beyond-the-most", update(0, most), flow),
            sized("of-three-bytes", 0, &[0, 0, 1]),
            sized("of-five-bytes", 1, &[0, 0, 0, 1, 0]),
            maker.fatal("of-an-idle-stream", update(9, 1), protocol),
        ],
    }
}

fn continuations(maker: Maker<'_>) -> Row {
    let block = block(&maker.0.connect());
    let begun = || frame(HEADERS, 0, 3, &block[..9]);
    let rest = |stream: u32| frame(CONTINUATION, END_HEADERS, stream, &block[9..]);
    let fatal =
        |name: &str, frames: &[Vec<u8>]| maker.fatal(name, frames.concat(), &[PROTOCOL_ERROR]);
    let between = |name: &str, between: Vec<u8>| fatal(name, &[begun(), between, rest(3)]);
    Row {
        id: "S03",
        title: "field blocks that are interrupted",
        section: "RFC 9113 §4.3, §6.10",
        required: "end the connection with PROTOCOL_ERROR",
        cases: vec![
            fatal("of-nothing", &[rest(1)]),
            fatal("of-nothing-on-an-idle-stream", &[rest(3)]),
            fatal("on-another-stream", &[begun(), rest(5)]),
            fatal("on-stream-0", &[begun(), rest(0)]),
            between("data-between", spam(1)),
            between("headers-between", maker.open(5)),
            between("ping-between", frame(PING, 0, 0, b"linerate")),
            between("reset-between", reset(3)),
            between("unknown-between", frame(0xB7, 0, 0, b"")),
        ],
    }
}

fn misplaced(maker: Maker<'_>) -> Row {
    // Left to h2, the library of linerate and of many other servers.
    let closed = &[STREAM_CLOSED, PROTOCOL_ERROR];
    let size = &[FRAME_SIZE_ERROR, PROTOCOL_ERROR];
    // §8.5: "MUST be treated as a stream error"; the standard does not name the error code.
    let any = &[PROTOCOL_ERROR, STREAM_CLOSED, CANCEL];
    let ended = [spam(1), frame(DATA, END_STREAM, 1, b"")].concat();
    let protocol = |name: &str, bytes: Vec<u8>| maker.fatal(name, bytes, &[PROTOCOL_ERROR]);
    let ended_and_more = [ended, spam(1)].concat();
    let short = frame(RST_STREAM, 0, 1, [0; 3]);
    let beside = |name: &str, parts: Vec<Vec<u8>>, codes: &'static [u32]| {
        let parts = [vec![maker.open(1)], parts].concat();
        maker.beside(name, parts, vec![Fate::Reset(codes)])
    };
    let trailers = |flags: u8| frame(HEADERS, END_HEADERS | flags, 1, block(&[("a", "b")]));
    Row {
        id: "S04",
        title: "frames that the state of the stream does not allow",
        section: "RFC 9113 §5.1, §6.1, §8.5",
        required: "reset the stream, or end the connection; PROTOCOL_ERROR in place of \
            FRAME_SIZE_ERROR or STREAM_CLOSED, as h2 answers, is accepted",
        cases: vec![
            protocol("data-on-stream-0", spam(0)),
            protocol("data-on-an-idle-stream", spam(9)),
            protocol("reset-of-an-idle-stream", reset(9)),
            protocol("reset-on-stream-0", reset(0)),
            maker.fatal("reset-of-three-bytes", short, size),
            protocol("goaway-on-a-stream", frame(GOAWAY, 0, 1, [0; 8])),
            beside("data-behind-its-end", vec![ended_and_more], closed),
            beside("data-behind-a-reset", vec![reset(1), spam(1)], closed),
            beside("second-request", vec![maker.open(1)], any),
            beside("fields-without-an-end", vec![trailers(0)], any),
            beside("fields-at-the-end", vec![trailers(END_STREAM)], any),
        ],
    }
}

fn identifiers(maker: Maker<'_>) -> Row {
    let fatal = |name: &str, id: u32| {
        let request = headers(id, &maker.0.connect());
        let parts = vec![maker.open(5), request];
        maker.case(name, parts, Expect::ConnectionError(&[PROTOCOL_ERROR]))
    };
    Row {
        id: "S16",
        title: "streams with invalid identifiers",
        section: "RFC 9113 §5.1.1",
        required: "end the connection with PROTOCOL_ERROR",
        cases: vec![
            fatal("zero", 0),
            fatal("of-the-server", 8),
            fatal("less-than-before", 3),
        ],
    }
}

fn unmasked(maker: Maker<'_>) -> Row {
    let closes = || Fate::Closes {
        codes: &[1002],
        before: Vec::new(),
    };
    let case = |name: &str, bytes: &[u8]| {
        let parts = vec![maker.open(1), frame(DATA, 0, 1, bytes)];
        maker.beside(name, parts, vec![closes()])
    };
    Row {
        id: "S10",
        title: "invalid WebSocket frames on one of several streams",
        section: "RFC 6455 §5.1, §5.2, §7.1.7; RFC 8441 §5",
        required: "fail this WebSocket, 1002, end its stream, and keep serving the others",
        cases: vec![
            case("text-without-a-mask", b"\x81\x04Spam"),
            case("ping-without-a-mask", b"\x89\x00"),
            case("reserved-opcode", &masked(&[Frame::new(0x3, "")])),
            case("reserved-bit", &masked(&[Frame::new(0x1, "").with_rsv(4)])),
            case("continuation-of-nothing", &masked(&[Frame::new(0x0, "")])),
        ],
    }
}
