//! Floods of frames that cost the client less than the server (RFC 9113 §10.5).

use super::{Maker, masked, reset, spam};
use crate::{
    case::{Case, Expect, Row},
    frame::Frame,
    http2::{
        FRAME_BYTES_MAX,
        frame::{
            CONTINUATION, DATA, HEADERS, PADDED, PING, PRIORITY, SETTINGS, WINDOW_UPDATE, frame,
        },
        hpack::block,
    },
};

/// The number of streams in a flood.
const STREAMS: u32 = 10_000;

/// The number of frames in a flood.
const FRAMES: usize = 100_000;

const SECTION: &str = "RFC 9113 §10.5";

/// Returns the rows.
pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![resets(maker), blocks(maker), data(maker), control(maker)]
}

/// Creates an input after which the next stream has to be served, if the connection stays open.
fn flood(maker: Maker<'_>, name: &str, flood: Vec<u8>, next: u32) -> Case {
    let parts = vec![maker.open(1), flood, maker.open(next), spam(next)];
    maker.case(name, parts, Expect::Endure(next))
}

fn row(id: &'static str, title: &'static str, cases: Vec<Case>) -> Row {
    Row {
        id,
        title,
        section: SECTION,
        required: "accept it or end the connection (ENHANCE_YOUR_CALM), and serve others afterwards",
        cases,
    }
}

fn resets(maker: Maker<'_>) -> Row {
    let each = |made: fn(u32) -> Vec<u8>| {
        let streams = (1..=STREAMS).map(|index| 1 + 2 * index);
        let frames = streams.map(|stream| [maker.open(stream), made(stream)].concat());
        frames.collect::<Vec<_>>().concat()
    };
    let next = 2 * STREAMS + 3;
    // RFC 9113 §6.9: a window increment of 0 is a stream error.
    let by_nothing = |stream: u32| frame(WINDOW_UPDATE, 0, stream, [0; 4]);
    row(
        "R81",
        "very many streams that are reset at once, by the client or by the server",
        vec![
            flood(maker, "given-up", each(reset), next),
            flood(maker, "made-to-reset", each(by_nothing), next),
        ],
    )
}

fn blocks(maker: Maker<'_>) -> Row {
    let endless = |payload: &[u8], frames: usize| {
        let first = frame(HEADERS, 0, 3, block(&maker.0.connect()));
        [first, frame(CONTINUATION, 0, 3, payload).repeat(frames)].concat()
    };
    let field = block(&[("a", "b")]);
    let long = block(&[("a", "b".repeat(FRAME_BYTES_MAX - 9))]);
    row(
        "R83",
        "field blocks without an end",
        vec![
            flood(maker, "of-nothing", endless(b"", FRAMES), 5),
            flood(maker, "of-small-fields", endless(&field, FRAMES), 5),
            flood(maker, "of-long-fields", endless(&long, 1_000), 5),
        ],
    )
}

fn data(maker: Maker<'_>) -> Row {
    let empty = frame(DATA, 0, 1, b"").repeat(FRAMES);
    let padded = frame(DATA, PADDED, 1, [0]).repeat(60_000);
    let fragment = masked(&[Frame::new(0x1, "").unfinished()]);
    let next = masked(&[Frame::new(0x0, "").unfinished()]);
    let fragments = [fragment, next.repeat(8_000)].concat();
    let fragments = fragments.chunks(1_024).map(|part| frame(DATA, 0, 1, part));
    let fragments: Vec<Vec<u8>> = fragments.collect();
    row(
        "R84",
        "very many DATA frames with almost no content",
        vec![
            flood(maker, "empty", empty, 3),
            flood(maker, "padding-alone", padded, 3),
            flood(maker, "empty-fragments", fragments.concat(), 3),
        ],
    )
}

fn control(maker: Maker<'_>) -> Row {
    let update = frame(WINDOW_UPDATE, 0, 0, 1_u32.to_be_bytes());
    let cases = [
        ("pings", frame(PING, 0, 0, [7; 8])),
        ("settings", frame(SETTINGS, 0, 0, b"")),
        ("priorities", frame(PRIORITY, 0, 1, [0, 0, 0, 0, 16])),
        ("windows", update),
        ("unknown", frame(0xB7, 0, 0, b"")),
    ];
    let cases = cases.map(|(name, bytes)| flood(maker, name, bytes.repeat(FRAMES), 3));
    row("R85", "very many frames that change nothing", cases.into())
}
