//! Frames that are too short, too long, or claim more padding than they have (RFC 9113 §4.2, §6),
//! and settings with invalid values (§6.5.2).

use super::{Maker, headers};
use crate::{
    case::{Expect, Row},
    http2::{
        FRAME_BYTES_MAX, Fate,
        frame::{
            ACK, DATA, ENABLE_PUSH, END_HEADERS, FLOW_CONTROL_ERROR, FRAME_SIZE_ERROR, GOAWAY,
            HEADERS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, PADDED, PING, PRIORITIZED, PRIORITY,
            PROTOCOL_ERROR, PUSH_PROMISE, SETTINGS, claiming, frame, settings,
        },
        hpack::block,
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![
        sizes(maker),
        padding(maker),
        strange(maker),
        invalid_settings(maker),
    ]
}

fn sizes(maker: Maker<'_>) -> Row {
    let size = &[FRAME_SIZE_ERROR];
    // Left to h2, the library of linerate and of many other servers.
    let left = &[FRAME_SIZE_ERROR, PROTOCOL_ERROR];
    let fatal = |name: &str, kind: u8, stream: u32, bytes: usize, codes| {
        maker.fatal(name, frame(kind, 0, stream, vec![0; bytes]), codes)
    };
    let with_setting = frame(SETTINGS, ACK, 0, [0; 6]);
    let without_priority = frame(HEADERS, END_HEADERS | PRIORITIZED, 3, [0; 4]);
    let long = claiming(0xFF_FFFF, DATA, 0, 1, b"Spam");
    let over = FRAME_BYTES_MAX + 1;
    let stream = |name: &str, kind: u8, bytes: usize, codes| {
        let parts = vec![maker.open(1), frame(kind, 0, 1, vec![0; bytes])];
        maker.beside(name, parts, vec![Fate::Reset(codes)])
    };
    Row {
        id: "S17",
        title: "frames with invalid lengths",
        section: "RFC 9113 §4.2, §6.3, §6.5, §6.7, §6.8",
        required: "end the connection with FRAME_SIZE_ERROR (or the stream, if only that is \
            affected); PROTOCOL_ERROR, as h2 answers to some, is accepted",
        cases: vec![
            stream("data-over-the-most", DATA, over, size),
            fatal("headers-over-the-most", HEADERS, 3, over, size),
            fatal("settings-over-the-most", SETTINGS, 0, over + 5, size),
            fatal("ping-of-7", PING, 0, 7, left),
            fatal("ping-of-9", PING, 0, 9, left),
            fatal("goaway-of-7", GOAWAY, 0, 7, left),
            fatal("settings-of-5", SETTINGS, 0, 5, left),
            stream("priority-of-4", PRIORITY, 4, left),
            maker.fatal("settings-answer-with-a-setting", with_setting, left),
            fatal("unknown-over-the-most", 0xB7, 0, over, size),
            maker.fatal("claims-16-mib", long, size),
            maker.fatal("headers-without-their-priority", without_priority, left),
        ],
    }
}

fn padding(maker: Maker<'_>) -> Row {
    let protocol = &[PROTOCOL_ERROR];
    let either = &[PROTOCOL_ERROR, FRAME_SIZE_ERROR];
    let fields = block(&maker.0.connect());
    let padded = [&[255][..], &fields].concat();
    let padded = &padded[..200.min(padded.len())];
    let headers = frame(HEADERS, PADDED | END_HEADERS, 3, padded);
    let data =
        |name: &str, bytes: &[u8], codes| maker.fatal(name, frame(DATA, PADDED, 1, bytes), codes);
    Row {
        id: "S18",
        title: "padding that is longer than its frame",
        section: "RFC 9113 §6.1, §6.2",
        required: "end the connection with PROTOCOL_ERROR",
        cases: vec![
            data("data-by-one", b"\x02a", protocol),
            data("data-all", b"\x01", protocol),
            data("data-much", b"\xff\x81\x80", protocol),
            data("data-without-a-length", b"", either),
            maker.fatal("headers", headers, protocol),
        ],
    }
}

fn strange(maker: Maker<'_>) -> Row {
    let protocol = &[PROTOCOL_ERROR];
    let priority = [0, 0, 0, 0, 16];
    let answer = frame(SETTINGS, ACK, 0, b"");
    let push = [&[0, 0, 0, 2][..], &block(&maker.0.connect())].concat();
    let fatal = |name: &str, bytes: Vec<u8>| maker.fatal(name, bytes, protocol);
    let first = |name: &str, bytes: Vec<u8>| {
        let bytes = [crate::http2::PREFACE, &bytes].concat();
        let mut case = maker.case(name, vec![bytes], Expect::ConnectionError(protocol));
        case.input.opening = crate::case::Opening::Http2Nothing;
        case
    };
    Row {
        id: "S19",
        title: "frames that no client may send",
        section: "RFC 9113 §3.4, §6.3, §6.5, §6.6, §6.7",
        required: "end the connection with PROTOCOL_ERROR",
        cases: vec![
            fatal("push-promise", frame(PUSH_PROMISE, END_HEADERS, 1, push)),
            fatal("settings-on-a-stream", frame(SETTINGS, 0, 1, b"")),
            fatal("ping-on-a-stream", frame(PING, 0, 1, [0; 8])),
            fatal("priority-on-stream-0", frame(PRIORITY, 0, 0, priority)),
            first("headers-before-settings", headers(1, &maker.0.connect())),
            first("ping-before-settings", frame(PING, 0, 0, [0; 8])),
            first("settings-answer-before-settings", answer),
        ],
    }
}

fn invalid_settings(maker: Maker<'_>) -> Row {
    let case = |name: &str, setting: u16, value: u32, codes: &'static [u32]| {
        maker.fatal(name, settings(&[(setting, value)]), codes)
    };
    let protocol = &[PROTOCOL_ERROR];
    // Left to h2, the library of linerate and of many other servers.
    let flow = &[FLOW_CONTROL_ERROR, PROTOCOL_ERROR];
    Row {
        id: "S20",
        title: "settings with invalid values",
        section: "RFC 9113 §6.5.2",
        required: "end the connection; PROTOCOL_ERROR in place of FLOW_CONTROL_ERROR, as h2 answers, \
            is accepted",
        cases: vec![
            case("push-2", ENABLE_PUSH, 2, protocol),
            case("push-most", ENABLE_PUSH, u32::MAX, protocol),
            case("window-beyond-the-most", INITIAL_WINDOW_SIZE, 1 << 31, flow),
            case("window-most", INITIAL_WINDOW_SIZE, u32::MAX, flow),
            case("frame-size-0", MAX_FRAME_SIZE, 0, protocol),
            case("frame-size-16383", MAX_FRAME_SIZE, 16_383, protocol),
            case("frame-size-2-24", MAX_FRAME_SIZE, 1 << 24, protocol),
        ],
    }
}
