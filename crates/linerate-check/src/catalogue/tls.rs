//! TLS below the WebSocket (RFC 8446, RFC 8996): records cut in any way, and input that is not a
//! handshake.

mod behind;

use super::{Wire, deadlines::left, sent, text};
use crate::{
    case::{Case, Expect, Opening, Row, Verdict, Wait},
    frame::{Frame, Role},
    tls::{Ending, Shape},
};

const PROTOCOL_VERSION: &[u8] = &[70];
const UNEXPECTED: &[u8] = &[10];

pub(super) fn rows() -> Vec<Row> {
    let wire = Wire(Role::Server);
    let mut rows = rows_of_both(wire);
    rows.extend([
        closing(),
        records(),
        behind::protocols(wire),
        behind::renegotiation(wire),
        versions(),
        hellos(),
    ]);
    rows.sort_by_key(|row| row.id);
    rows
}

/// Returns the rows for a client that connects over TLS.
pub(super) fn rows_of_client() -> Vec<Row> {
    let mut rows = rows_of_both(Wire(Role::Client));
    rows.push(answers());
    rows
}

fn rows_of_both(wire: Wire) -> Vec<Row> {
    vec![
        pieces(wire),
        truncated(wire),
        behind::protected(wire),
        behind::bare(wire),
    ]
}

/// Creates an input on a WebSocket over a TLS connection with this shape.
fn shaped(wire: Wire, name: &str, shape: Shape, frames: &[Frame], expect: Expect) -> Case {
    let bytes = wire.bytes(frames);
    sent(name, Opening::Tls(shape), [bytes], Wait::Answer, expect)
}

/// Creates an input that is sent instead of a TLS handshake.
fn raw(name: impl Into<String>, bytes: Vec<u8>, alerts: &'static [u8]) -> Case {
    let expect = Expect::Alert(alerts);
    sent(name, Opening::Tcp, [bytes], Wait::Answer, expect)
}

fn pieces(wire: Wire) -> Row {
    let messages = [
        Frame::new(0x1, "Spam"),
        Frame::new(0x9, "?"),
        Frame::new(0x2, vec![7; 300]),
    ];
    let answers = || {
        let binary = super::binary(vec![7; 300]);
        Expect::Answers(vec![text("Spam"), super::pong("?"), binary])
    };
    let case = |name: &str, shape: Shape| shaped(wire, name, shape, &messages, answers());
    let plain = Shape::default();
    let segments = |bytes| Shape {
        segment_bytes_max: Some(bytes),
        ..plain
    };
    let records = |bytes| Shape {
        record_bytes_max: Some(bytes),
        ..plain
    };
    let writes = |bytes| Shape {
        write_bytes_max: Some(bytes),
        ..plain
    };
    let all = Shape {
        segment_bytes_max: Some(1),
        write_bytes_max: Some(1),
        record_bytes_max: Some(32),
        ..plain
    };
    Row {
        id: "T01",
        title: "handshakes and messages in many records and segments",
        section: "RFC 8446 §5.1",
        required: "accept",
        cases: vec![
            case("segments-of-1", segments(1)),
            case("segments-of-7", segments(7)),
            case("records-of-32", records(32)),
            case("records-of-64", records(64)),
            case("one-byte-per-record", writes(1)),
            case("five-bytes-per-record", writes(5)),
            case("all-of-it", all),
        ],
    }
}

/// Returns the bytes of a record.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    [&[kind, 3, 1], &length[..], content].concat()
}

fn closing() -> Row {
    let warnings = record(21, &[1, 90]).repeat(1_000);
    Row {
        id: "T02",
        title: "alerts instead of a handshake",
        section: "RFC 8446 §6.1, §6.2",
        required: "end the connection",
        cases: vec![
            raw("close-notify", record(21, &[1, 0]), &[]),
            raw("fatal", record(21, &[2, 40]), &[]),
            raw("of-one-byte", record(21, &[2]), &[]),
            raw("very-many-warnings", warnings, &[]),
        ],
    }
}

/// Expects the connection to end. Keeping it open is permitted.
const fn ends() -> Expect {
    Expect::End {
        otherwise: Verdict::Permitted,
    }
}

fn truncated(wire: Wire) -> Row {
    let shape = Shape {
        ending: Ending::Truncated,
        ..Shape::default()
    };
    let bytes = wire.bytes(&[Frame::new(0x1, "Spam")]);
    let case = |cut: usize| {
        let (name, begin) = (format!("at-{cut}"), [bytes[..cut].to_vec()]);
        let mut case = sent(name, Opening::Tls(shape), begin, Wait::Answer, ends());
        case.input.ends = true;
        case
    };
    Row {
        id: "T03",
        title: "connections that end without close_notify in the middle of a message",
        section: "RFC 8446 §6.1; RFC 6455 §7.1.4, §7.1.5",
        required: "end the connection, and deliver nothing",
        cases: (0..bytes.len()).map(case).collect(),
    }
}

fn records() -> Row {
    let hello = hello(0x0303, &[0x13, 0x01], &[0], b"");
    let huge = [&[22, 3, 1, 0xFF, 0xFF][..], &[1; 0x4200]].concat();
    let http = b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec();
    let torn = [record(22, &hello[..9]), record(23, b"Spam")].concat();
    Row {
        id: "T04",
        title: "bytes that are not a handshake",
        section: "RFC 8446 §5, §5.1, §6.2",
        required: "end the connection, with an alert if the input is TLS",
        cases: vec![
            raw("http", http, &[]),
            raw("zeros", vec![0; 64], &[]),
            raw("ones", vec![0xFF; 64], &[]),
            raw("http2-preface", crate::http2::PREFACE.to_vec(), &[]),
            raw("unknown-record", record(99, b"Spam"), &[]),
            raw("application-data", record(23, b"Spam"), UNEXPECTED),
            raw("application-data-inside-of-a-hello", torn, UNEXPECTED),
            raw("heartbeat", record(24, &[1, 0x40, 0]), &[]),
            raw("record-over-the-most", huge, &[]),
            raw("server-hello", record(22, &[2, 0, 0, 2, 3, 3]), &[]),
            raw("finished", record(22, &[20, 0, 0, 4, 1, 2, 3, 4]), &[]),
        ],
    }
}

/// Returns a ClientHello (RFC 8446 §4.1.2) with this version, suites, compressions and extensions.
fn hello(version: u16, suites: &[u8], compressions: &[u8], extensions: &[u8]) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend((suites.len() as u16).to_be_bytes());
    body.extend(suites);
    body.push(compressions.len() as u8);
    body.extend(compressions);
    if !extensions.is_empty() {
        body.extend((extensions.len() as u16).to_be_bytes());
        body.extend(extensions);
    }
    let length = (body.len() as u32).to_be_bytes();
    [&[1], &length[1..], &body].concat()
}

/// Cipher suites from the time of SSL 3.0 and TLS 1.0.
const OLD_SUITES: &[u8] = &[0x00, 0x2F, 0x00, 0x35, 0x00, 0x0A, 0xC0, 0x13, 0xC0, 0x14];

fn versions() -> Row {
    let old = |(name, version): (&str, u16)| {
        let bytes = hello(version, OLD_SUITES, &[0], b"");
        raw(name, record(22, &bytes), PROTOCOL_VERSION)
    };
    let cases = [("ssl-3.0", 0x300), ("tls-1.0", 0x301), ("tls-1.1", 0x302)];
    let mut cases: Vec<Case> = cases.into_iter().map(old).collect();
    // An SSL 2.0 hello, whose length has its top bit set.
    let ssl2 = [&[0x80, 0x2E, 1, 0, 2, 0, 21, 0, 0, 0, 16][..], &[7; 37]].concat();
    cases.push(raw("ssl-2.0", ssl2, &[]));
    Row {
        id: "T10",
        title: "versions of TLS that must not be used",
        section: "RFC 8996 §4, §5; RFC 7568; RFC 8446 Appendix D.2",
        required: "end the connection with the alert protocol_version",
        cases,
    }
}

/// Returns the row of handshakes that make no progress. Its inputs take as long as the server
/// waits.
pub(super) fn unfinished() -> Row {
    // The beginning of a hello of 8 KiB.
    let hello = [&[22, 3, 1, 0x20, 0x04, 1, 0, 0x20, 0, 3, 3][..], &[7; 9]].concat();
    let case = |name: &str, begin: &[u8], drip: &[u8]| left(name, Opening::Tcp, begin.into(), drip);
    Row {
        id: "T12",
        title: "TLS handshakes that never end",
        section: "RFC 8446 §4.1.2; RFC 9112 §9.5",
        required: "end the connection within a deadline, even if single bytes arrive",
        cases: vec![
            case("nothing", b"", b""),
            case("in-the-first-header", &hello[..3], b""),
            case("in-the-hello", &hello, b""),
            case("hello-byte-by-byte", &hello, b"x"),
        ],
    }
}

fn hellos() -> Row {
    let refused = &[40, 47, 50, 70, 71, 109];
    let suites = &[0x13, 0x01, 0xC0, 0x2B, 0xC0, 0x2F];
    let case = |name: &str, hello: Vec<u8>| raw(name, record(22, &hello), refused);
    let hello = |suites: &[u8], compressions: &[u8], extensions: &[u8]| {
        hello(0x0303, suites, compressions, extensions)
    };
    // Extended master secret, twice (RFC 8446 §4.2).
    let twice = [0, 23, 0, 0, 0, 23, 0, 0];
    let cut = [0, 10, 0, 99, 0, 2];
    let mut longer = hello(suites, &[0], b"");
    longer[1] = 0xFF;

    Row {
        id: "T11",
        title: "hellos that are malformed or offer nothing to agree on",
        section: "RFC 8446 §4.1.2, §4.2, §6.2",
        required: "end the connection with an alert",
        cases: vec![
            case("no-suites", hello(&[], &[0], b"")),
            case("unknown-suites", hello(&[0xFA, 0xFA], &[0], b"")),
            case("no-compression", hello(suites, &[], b"")),
            case("suites-of-odd-length", hello(&[0x13], &[0], b"")),
            case("extension-twice", hello(suites, &[0], &twice)),
            case("extension-cut", hello(suites, &[0], &cut)),
            case("claims-16-mib", longer),
        ],
    }
}

/// Returns a ServerHello with this version and suite, and an empty session id.
fn server_hello(version: u16, suite: u16) -> Vec<u8> {
    let mut body = version.to_be_bytes().to_vec();
    body.extend([7; 32]);
    body.push(0);
    body.extend(suite.to_be_bytes());
    body.push(0);
    record(22, &[&[2, 0, 0, body.len() as u8][..], &body].concat())
}

fn answers() -> Row {
    let client_hello = record(22, &hello(0x0303, &[0x13, 0x01], &[0], b""));
    Row {
        id: "T15",
        title: "answers to a hello that cannot continue a handshake",
        section: "RFC 8446 §4.1.3, §5, §6.2; RFC 8996 §4, §5",
        required: "end the connection, with an alert if the input is TLS",
        cases: vec![
            raw("fatal-alert", record(21, &[2, 40]), &[]),
            raw("http", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), &[]),
            raw("zeros", vec![0; 64], &[]),
            raw("application-data", record(23, b"Spam"), UNEXPECTED),
            raw("client-hello", client_hello, UNEXPECTED),
            raw("tls-1.0", server_hello(0x0301, 0x002F), PROTOCOL_VERSION),
            raw("tls-1.1", server_hello(0x0302, 0x002F), PROTOCOL_VERSION),
            raw("unknown-suite", server_hello(0x0303, 0xFAFA), &[40, 47]),
        ],
    }
}
