//! Input that every server that accepts WebSockets over HTTP/2 has to accept.

use super::{Maker, answers, headers, masked, spam, spams};
use crate::{
    case::{Case, Expect, Opening, Row},
    catalogue::{binary, pong, text},
    frame::Frame,
    http2::{
        Fate,
        frame::{
            ACK, CONTINUATION, DATA, END_HEADERS, HEADERS, INITIAL_WINDOW_SIZE, PADDED, PING,
            PRIORITIZED, PRIORITY, WINDOW_UPDATE, frame, settings,
        },
        hpack::{block, push_text},
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![
        messages(maker),
        requests(maker),
        ignored(maker),
        windows(maker),
        padding(maker),
        stalled(maker),
        stalled_long(maker),
    ]
}

fn messages(maker: Maker<'_>) -> Row {
    let message = masked(&[Frame::new(0x1, "Spam")]);
    let case = |name: &str, parts: Vec<Vec<u8>>| {
        let parts = [vec![maker.open(1)], parts].concat();
        maker.case(name, parts, answers(vec![text("Spam")]))
    };
    let data = |bytes: &[u8]| frame(DATA, 0, 1, bytes);
    let each: Vec<Vec<u8>> = message.iter().map(|byte| data(&[*byte])).collect();
    let with_empty: Vec<Vec<u8>> = message
        .chunks(3)
        .flat_map(|part| [data(b""), data(part)])
        .collect();
    let sevens = vec![7; 40_000];
    let long = masked(&[Frame::new(0x2, sevens.clone())]);
    let long: Vec<Vec<u8>> = long.chunks(16_384).map(data).collect();
    let long = vec![maker.open(1), long.concat()];
    let three = masked(&[
        Frame::new(0x9, "?"),
        Frame::new(0x1, "Sp").unfinished(),
        Frame::new(0x0, "am"),
    ]);
    let all = answers(vec![pong("?"), text("Spam")]);
    let both = vec![maker.open(1), maker.open(3), [spam(1), spam(3)].concat()];
    let on_both = Expect::Streams(vec![(1, spams()), (3, spams())]);
    let page = vec![Fate::Answered];
    Row {
        id: "S13",
        title: "messages on streams, split over DATA frames in any way",
        section: "RFC 8441 §5; RFC 9113 §6.1",
        required: "accept",
        cases: vec![
            case("one", vec![spam(1)]),
            case("in-bytes", vec![each.concat()]),
            case("between-empty-data", vec![with_empty.concat()]),
            maker.case("in-largest-data", long, answers(vec![binary(sevens)])),
            maker.case("three-in-one", vec![maker.open(1), data(&three)], all),
            maker.case("on-two-streams", both, on_both),
            maker.beside("behind-another-request", vec![get(maker)], page),
        ],
    }
}

/// Returns a request for a page.
fn get(maker: Maker<'_>) -> Vec<u8> {
    let mut fields = maker.without(":protocol");
    fields.retain(|(name, _)| name != b"sec-websocket-version");
    if let Some((_, method)) = fields.first_mut() {
        *method = b"GET".to_vec();
    }
    let mut request = headers(1, &fields);
    // END_STREAM.
    request[4] |= 1;
    request
}

fn requests(maker: Maker<'_>) -> Row {
    let opens = |name: &str, request: Vec<u8>| {
        let parts = vec![request, spam(1)];
        maker.case(name, parts, answers(vec![text("Spam")]))
    };
    let block = block(&maker.0.connect());
    let parts: Vec<&[u8]> = block.chunks(block.len().div_ceil(3)).collect();
    let last = parts.len() - 1;
    let continued = parts.iter().enumerate().map(|(index, part)| {
        let kind = if index == 0 { HEADERS } else { CONTINUATION };
        frame(kind, if index == last { END_HEADERS } else { 0 }, 1, part)
    });
    let continued = continued.collect::<Vec<_>>().concat();
    let padded = [&[3][..], &block, &[0; 3]].concat();
    let prioritized = [&[0, 0, 0, 0, 16][..], &block].concat();
    let prioritized = frame(HEADERS, END_HEADERS | PRIORITIZED, 1, prioritized);
    let host = headers(1, &maker.with("host", &maker.0.authority));
    let empty_first = [
        frame(HEADERS, 0, 1, b""),
        frame(CONTINUATION, END_HEADERS, 1, &block),
    ];
    let mut with_te = maker.with("te", "trailers");
    with_te.push((b"x-empty".to_vec(), Vec::new()));
    Row {
        id: "S14",
        title: "valid requests for a WebSocket in different encodings",
        section: "RFC 8441 §4, §5; RFC 9113 §6.2, §6.10; RFC 7541 §6",
        required: "accept",
        cases: vec![
            opens("plain", maker.open(1)),
            opens("continued", continued),
            opens("continued-from-nothing", empty_first.concat()),
            opens("padded", frame(HEADERS, END_HEADERS | PADDED, 1, padded)),
            opens("with-priority", prioritized),
            opens("te-trailers-and-an-empty-field", headers(1, &with_te)),
            opens("host-like-authority", host),
            opens("cookies-apart", headers(1, &cookies(maker))),
            opens("fields-that-are-indexed", indexed(maker)),
            maker.case(
                "fields-of-the-table",
                vec![indexed(maker), spam(1), referring(maker), spam(3)],
                Expect::Streams(vec![(1, spams()), (3, spams())]),
            ),
        ],
    }
}

fn cookies(maker: Maker<'_>) -> crate::http2::Fields {
    let mut fields = maker.0.connect();
    fields.extend([
        (b"cookie".to_vec(), b"a=b".to_vec()),
        (b"cookie".to_vec(), b"c=d".to_vec()),
    ]);
    fields
}

/// Returns a request whose last field, the version, is added to the dynamic table (RFC 7541
/// §6.2.1).
fn indexed(maker: Maker<'_>) -> Vec<u8> {
    let mut bytes = block(&maker.without("sec-websocket-version"));
    bytes.push(0x40);
    push_text(&mut bytes, b"sec-websocket-version");
    push_text(&mut bytes, b"13");
    frame(HEADERS, END_HEADERS, 1, bytes)
}

/// Returns a request that refers to this entry: index 62 is the newest entry (RFC 7541 §6.1).
fn referring(maker: Maker<'_>) -> Vec<u8> {
    let mut bytes = block(&maker.without("sec-websocket-version"));
    bytes.push(0x80 | 62);
    frame(HEADERS, END_HEADERS, 3, bytes)
}

fn ignored(maker: Maker<'_>) -> Row {
    let unknown = |stream: u32| frame(0xB7, 0xFF, stream, b"Spam");
    let by_one = |flags: u8, stream: u32| frame(WINDOW_UPDATE, flags, stream, 1_u32.to_be_bytes());
    let priority = |stream: u32, payload: [u8; 5]| frame(PRIORITY, 0, stream, payload);
    let twice = settings(&[(INITIAL_WINDOW_SIZE, 1), (INITIAL_WINDOW_SIZE, 70_000)]);
    let case = |name: &str, bytes: Vec<u8>| {
        let parts = vec![maker.open(1), [bytes, spam(1)].concat()];
        maker.case(name, parts, answers(vec![text("Spam")]))
    };
    Row {
        id: "S15",
        title: "unknown frames and settings, and those that change nothing",
        section: "RFC 9113 §4.1, §5.5, §6.5.2, §6.7",
        required: "ignore",
        cases: vec![
            case("frame-type-unknown", unknown(0)),
            case("frame-type-unknown-on-the-stream", unknown(1)),
            case("setting-unknown", settings(&[(0xBAD, 7)])),
            case("settings-empty", settings(&[])),
            case("setting-twice", twice),
            case("flags-unknown", by_one(0xFF, 1)),
            case("reserved-bit-of-a-stream", by_one(0, 1 | 1 << 31)),
            case("ping", frame(PING, 0, 0, b"linerate")),
            case("ping-answer-unasked", frame(PING, ACK, 0, b"linerate")),
            case("priority", priority(1, [0, 0, 0, 0, 16])),
            case("priority-of-an-idle-stream", priority(9, [0, 0, 0, 1, 16])),
        ],
    }
}

/// Makes the streams of an input begin with a window of `window` bytes.
fn windowed(mut case: Case, window: u32) -> Case {
    case.input.opening = Opening::Http2 {
        window: Some(window),
    };
    case
}

fn windows(maker: Maker<'_>) -> Row {
    let by = |bytes: u32| frame(WINDOW_UPDATE, 0, 1, bytes.to_be_bytes());
    let case = |name: &str, window: u32, more: Vec<Vec<u8>>| {
        let parts = [vec![maker.open(1), spam(1)], more].concat();
        windowed(maker.case(name, parts, answers(vec![text("Spam")])), window)
    };
    let initial = |bytes: u32| settings(&[(INITIAL_WINDOW_SIZE, bytes)]);
    let from_below = vec![initial(0), initial(6)];
    // The answer has six bytes.
    Row {
        id: "S05",
        title: "windows that are closed or grow slowly",
        section: "RFC 9113 §5.2, §6.9",
        required: "send what the window allows, at once and no more",
        cases: vec![
            case("of-0-opened-by-6", 0, vec![by(6)]),
            case("of-1-opened-by-single-bytes", 1, vec![by(1); 5]),
            case("of-2-opened-at-once", 2, vec![by(60_000)]),
            case("opened-by-a-setting", 0, vec![initial(6)]),
            case("opened-by-a-setting-from-below", 3, from_below),
        ],
    }
}

fn padding(maker: Maker<'_>) -> Row {
    let message = masked(&[Frame::new(0x1, "Spam")]);
    let padded = |padding: u8| {
        let mut payload = vec![padding];
        payload.extend(&message);
        payload.resize(payload.len() + usize::from(padding), 0);
        frame(DATA, PADDED, 1, payload)
    };
    let only = frame(DATA, PADDED, 1, [&[255][..], &[0; 255]].concat());
    // More than any window allows, unless the server replenishes it for padding.
    let much = [only.repeat(100), spam(1)].concat();
    let case = |name: &str, bytes: Vec<u8>| {
        let parts = vec![maker.open(1), bytes];
        maker.case(name, parts, answers(vec![text("Spam")]))
    };
    Row {
        id: "S07",
        title: "DATA with padding",
        section: "RFC 9113 §6.1",
        required: "accept, and ignore the padding",
        cases: vec![
            case("of-0", padded(0)),
            case("of-1", padded(1)),
            case("of-255", padded(255)),
            case("padding-alone", [only, spam(1)].concat()),
            case("very-often", much),
        ],
    }
}

fn stalled_long(maker: Maker<'_>) -> Row {
    let message = |byte: u8| masked(&[Frame::new(0x2, vec![byte; 10_000])]);
    let sent: Vec<Vec<u8>> = (0..6)
        .map(|byte| frame(DATA, 0, 1, message(byte)))
        .collect();
    let all: Vec<_> = (0..6).map(|byte| binary(vec![byte; 10_000])).collect();
    let by = |bytes: u32| frame(WINDOW_UPDATE, 0, 1, bytes.to_be_bytes());
    let at_once = vec![maker.open(1), sent.concat(), by(60_100)];
    let in_steps = [vec![maker.open(1), sent.concat()], vec![by(9_000); 7]].concat();
    let case = |name: &str, parts: Vec<Vec<u8>>| {
        windowed(maker.case(name, parts, answers(all.clone())), 0)
    };
    Row {
        id: "S06",
        title: "a reader that stalls with much data pending, and then continues",
        section: "RFC 9113 §5.2.1; RFC 8441 §5",
        required: "wait, and lose nothing",
        cases: vec![case("at-once", at_once), case("in-steps", in_steps)],
    }
}

fn stalled(maker: Maker<'_>) -> Row {
    let both = || Expect::Streams(vec![(1, spams()), (3, spams())]);
    let open = |stream: u32| frame(WINDOW_UPDATE, 0, stream, 100_u32.to_be_bytes());
    let parts = |last: [Vec<u8>; 4]| [vec![maker.open(1), maker.open(3)], last.into()].concat();
    let in_order = parts([spam(1), spam(3), open(3), open(1)]);
    let reversed = parts([spam(3), spam(1), open(1), open(3)]);
    Row {
        id: "S12",
        title: "streams next to one whose reader stalls",
        section: "RFC 9113 §5.2.1",
        required: "serve each as its window allows",
        cases: vec![
            windowed(maker.case("the-first-stalls", in_order, both()), 0),
            windowed(maker.case("the-last-stalls", reversed, both()), 0),
        ],
    }
}
