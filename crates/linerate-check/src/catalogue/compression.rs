//! Compressed messages (RFC 7692), for endpoints that negotiate compression.

mod broken;
mod messages;
mod offers;

use std::io::Write;

use flate2::{Compression, write::DeflateEncoder};

use super::{Wire, text};
use crate::{
    answers::Answer,
    case::{Case, Expect, Opening, Row},
    frame::{Frame, Role},
};

/// An offer without parameters.
const OFFER: &str = "permessage-deflate";

/// An offer with which none of our messages refers to an earlier one.
const EACH: &str = "permessage-deflate; client_no_context_takeover";

/// An offer that lets the server limit our window.
const ANY_WINDOW: &str = "permessage-deflate; client_max_window_bits";

/// `Hello`, compressed (RFC 7692 §7.2.3.1).
const HELLO: &[u8] = b"\xf2\x48\xcd\xc9\xc9\x07\x00";

/// `Hello` in a block without compression (RFC 7692 §7.2.3.3).
const STORED: &[u8] = b"\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00";

/// `Hello` in a block with BFINAL set (RFC 7692 §7.2.3.4).
const FINAL: &[u8] = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";

/// `Hello` in two blocks (RFC 7692 §7.2.3.5).
const TWO_BLOCKS: &[u8] = b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00";

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    let mut rows = rows_of_both(wire);
    rows.extend([offers::windows(wire), offers::bad_offers()]);
    rows
}

/// Returns the rows for a client that offers compression.
pub(super) fn rows_of_client(wire: Wire) -> Vec<Row> {
    let mut rows = rows_of_both(wire);
    rows.push(offers::bad_answers());
    rows
}

fn rows_of_both(wire: Wire) -> Vec<Row> {
    vec![
        messages::valid(wire),
        messages::empty(wire),
        messages::finals(wire),
        messages::takeover(wire),
        broken::reserved_bits(wire),
        broken::broken(wire),
        broken::not_text(wire),
        messages::fragments(wire),
    ]
}

/// Creates a frame that is marked as compressed.
fn compressed(opcode: u8, payload: impl Into<Vec<u8>>) -> Frame {
    Frame::new(opcode, payload).with_rsv(4)
}

fn case(wire: Wire, name: &str, frames: &[Frame], expect: Expect) -> Case {
    offering(OFFER, wire.case(name, frames, expect))
}

fn offering(offer: &'static str, mut case: Case) -> Case {
    case.input.opening = Opening::Extended(offer);
    case
}

/// Makes an input require a WebSocket whose messages may refer to earlier ones.
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

/// Compresses a message (RFC 7692 §7.2.1). Clients may ask for a small window, so what is sent to
/// them refers back at most 256 bytes.
fn deflated(wire: Wire, payload: &[u8]) -> Vec<u8> {
    let far = match wire.0 {
        Role::Client => 256,
        Role::Server => usize::MAX,
    };
    let mut bytes = Vec::new();
    for part in payload.chunks(far) {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        // Writing to a vector cannot fail.
        _ = encoder.write_all(part).and_then(|()| encoder.flush());
        bytes.extend(encoder.get_ref());
    }
    bytes.truncate(bytes.len().saturating_sub(4));
    bytes
}
