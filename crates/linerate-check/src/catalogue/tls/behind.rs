//! Input after the handshake, in the middle of a message: alerts, handshake messages and
//! unprotected bytes (RFC 8446 §5, §6); and the negotiation of the protocol (RFC 7301).

use super::{ends, hello, shaped};
use crate::{
    case::{Case, Expect, Row, Verdict, Wait},
    catalogue::{Opening, Wire, sent, text},
    frame::Frame,
    tls::{Ending, Shape},
};

/// Expects the connection to end. Keeping it open is wrong.
const fn must_end() -> Expect {
    Expect::End {
        otherwise: Verdict::Wrong,
    }
}

/// Creates an input that ends in the middle of a message.
fn ending(wire: Wire, name: &str, shape: Shape, expect: Expect) -> Case {
    let mut bytes = wire.bytes(&[Frame::new(0x1, "Spam")]);
    bytes.truncate(bytes.len() - 2);
    let mut case = sent(name, Opening::Tls(shape), [bytes], Wait::Answer, expect);
    case.input.ends = true;
    case
}

fn record(kind: u8, content: &'static [u8]) -> Shape {
    Shape {
        ending: Ending::Record(kind, content),
        ..Shape::default()
    }
}

pub(super) fn protected(wire: Wire) -> Row {
    let case = |name, kind, content| ending(wire, name, record(kind, content), must_end());
    Row {
        id: "T13",
        title: "alerts and handshake messages in the middle of a message",
        section: "RFC 8446 §4.6.3, §5, §5.4, §6, §6.2",
        required: "end the connection, and deliver nothing",
        cases: vec![
            case("fatal-alert", 21, &[2, 40]),
            case("alert-that-is-unknown", 21, &[2, 250]),
            case("alert-of-one-byte", 21, &[2]),
            case("empty-alert", 21, b""),
            ending(wire, "close-notify", record(21, &[1, 0]), ends()),
            case("unknown-record", 99, b"Spam"),
            case("change-cipher-spec", 20, &[1]),
            case("client-hello", 22, &[1, 0, 0, 2, 3, 3]),
            case("server-hello", 22, &[2, 0, 0, 2, 3, 3]),
            case("empty-message", 22, b""),
            case("key-update-of-2", 22, &[24, 0, 0, 1, 2]),
            case("key-update-too-long", 22, &[24, 0, 0, 2, 0, 0]),
        ],
    }
}

/// An unprotected alert, and bytes that look like the rest of the message, as an attacker on the
/// path could send them.
const BARE_ALERT: &[u8] = &[21, 3, 3, 0, 2, 2, 40];
const BARE_DATA: &[u8] = &[23, 3, 3, 0, 2, b'a', b'm'];
const BARE_RECORD: &[u8] = &[
    23, 3, 3, 0, 20, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
];
const TOO_LONG: &[u8] = &[23, 3, 3, 0xFF, 0xFF, 7, 7, 7, 7];

pub(super) fn bare(wire: Wire) -> Row {
    let case = |name, bytes| {
        let shape = Shape {
            ending: Ending::Bare(bytes),
            ..Shape::default()
        };
        ending(wire, name, shape, must_end())
    };
    Row {
        id: "T14",
        title: "unprotected records after the handshake",
        section: "RFC 8446 §5.2, §6.2",
        required: "end the connection, and deliver nothing",
        cases: vec![
            case("alert", BARE_ALERT),
            case("rest-of-the-message", BARE_DATA),
            case("record-of-noise", BARE_RECORD),
            case("record-over-the-most", TOO_LONG),
            case("http", b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"),
        ],
    }
}

/// A second hello without the extension of RFC 5746, which would bind it to the current connection.
static HELLO: std::sync::LazyLock<Vec<u8>> =
    std::sync::LazyLock::new(|| hello(0x0303, &[0xC0, 0x2B, 0xC0, 0x2F], &[0], b""));

pub(super) fn renegotiation(wire: Wire) -> Row {
    let shape = Shape {
        ending: Ending::Record(22, &HELLO),
        is_tls12: true,
        ..Shape::default()
    };
    let expect = Expect::End {
        otherwise: Verdict::Right,
    };
    Row {
        id: "T16",
        title: "renegotiation by the client in TLS 1.2, without RFC 5746",
        section: "RFC 5746 §3.7, §4.5; RFC 5246 §7.4.1.2",
        required: "refuse it, or end the connection",
        cases: vec![ending(wire, "client-hello", shape, expect)],
    }
}

pub(super) fn protocols(wire: Wire) -> Row {
    let case = |name, protocols| {
        let shape = Shape {
            protocols,
            ..Shape::default()
        };
        let answers = Expect::Answers(vec![text("Spam")]);
        shaped(wire, name, shape, &[Frame::new(0x1, "Spam")], answers)
    };
    Row {
        id: "T05",
        title: "offers of application protocols (ALPN)",
        section: "RFC 7301 §3.1, §3.2",
        required: "select HTTP/1.1; without a common protocol, send the alert no_application_protocol or ignore the offer",
        cases: vec![
            case("http1", &[b"http/1.1"]),
            case("unknown-and-http1", &[b"x-unknown", b"http/1.1"]),
            case("unknown", &[b"x-unknown"]),
        ],
    }
}
