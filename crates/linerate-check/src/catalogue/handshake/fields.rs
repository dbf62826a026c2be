//! Requests with bodies, ambiguous lengths, large fields, and bytes beyond ASCII (RFC 9110,
//! RFC 9112 §6).

use super::{opens, raw, refused_or_ignored, with_line};
use crate::{
    case::{Expect, Row},
    run::request,
};

pub(super) fn rows() -> Vec<Row> {
    vec![bodies(), lengths(), large(), beyond_ascii()]
}

/// A request that is sent as the body of another one, where it must not be answered.
const INNER: &str = "GET / HTTP/1.1\r\nHost: inner.example\r\n\r\n";

/// Requests inside requests: an endpoint that answers the inner one allows request smuggling.
fn bodies() -> Row {
    let bytes = INNER.len();
    let with_length = request(&format!("Content-Length: {bytes}\r\n"));
    let chunked = request("Transfer-Encoding: chunked\r\n");
    let chunk = format!("{chunked}{bytes:x}\r\n{INNER}\r\n0\r\n\r\n");
    let both = request("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n");
    let case = |name: &str, bytes: String| raw(name, bytes, Expect::OpenOrRefuse);
    Row {
        id: "H06",
        title: "requests whose body contains another request",
        section: "RFC 9112 §6.1, §6.3, §9.3; RFC 9110 §7.8",
        required: "the body is never answered as a request",
        cases: vec![
            case("length", format!("{with_length}{INNER}")),
            case("chunked-empty", format!("{chunked}0\r\n\r\n")),
            case("chunked", chunk),
            case("length-and-chunked", format!("{both}0\r\n\r\n")),
        ],
    }
}

fn lengths() -> Row {
    let line = |name: &str, line: &str| {
        let expect = Expect::Refuse {
            statuses: &[400, 413, 501],
            fields: &[],
            alone: true,
            may_ignore: false,
        };
        raw(name, request(&format!("{line}\r\n")), expect)
    };
    Row {
        id: "H09",
        title: "lengths that two parsers could read differently",
        section: "RFC 9112 §6.1, §6.3",
        required: "400, then end the connection",
        cases: vec![
            line("plus", "Content-Length: +5"),
            line("minus", "Content-Length: -1"),
            line("hexadecimal", "Content-Length: 0x5"),
            line("empty", "Content-Length:"),
            line("two-values", "Content-Length: 5, 6"),
            line("space-inside", "Content-Length: 1 2"),
            line("too-large", "Content-Length: 99999999999999999999999"),
            line("chunked-not-last", "Transfer-Encoding: chunked, gzip"),
            line("no-coding", "Transfer-Encoding: xchunked"),
        ],
    }
}

fn large() -> Row {
    let either = || Expect::OpenOrRefuse;
    let case = |name: &str, more: String| raw(name, request(&more), either());
    let long = |bytes: usize| "x".repeat(bytes);
    let moderate: String = (0..20)
        .map(|n| format!("X-{n}: {}\r\n", "v".repeat(50)))
        .collect();
    Row {
        id: "H11",
        title: "large fields, and many fields",
        section: "RFC 6585 §5; RFC 9110 §5.4",
        required: "a response at the limit (431), or a WebSocket",
        cases: vec![
            raw("moderate", request(&moderate), opens()),
            case("a-field-of-64-kib", format!("X: {}\r\n", long(64 << 10))),
            case("a-field-of-1-mib", format!("X: {}\r\n", long(1 << 20))),
            case("a-name-of-64-kib", format!("{}: x\r\n", long(64 << 10))),
            case("a-thousand-fields", "X: x\r\n".repeat(1_000)),
            case("thirty-thousand-fields", "X: x\r\n".repeat(30_000)),
        ],
    }
}

fn beyond_ascii() -> Row {
    let line = |name: &str, line: &[u8], expect| raw(name, with_line(line), expect);
    let torn = b"Sec-WebSocket-Extensions: x; a=\xc3\x28";
    let utf8 = b"Sec-WebSocket-Protocol: caf\xc3\xa9";
    let either = || Expect::OpenOrRefuse;
    let bad = || refused_or_ignored(&[400]);
    Row {
        id: "H14",
        title: "bytes beyond ASCII",
        section: "RFC 9110 §5.5; RFC 6455 §9.1",
        required: "400, or ignore the field; the server keeps working",
        cases: vec![
            line("protocol-ff", b"Sec-WebSocket-Protocol: \xff", either()),
            line("protocol-utf8", utf8, either()),
            line("extensions-ff", b"Sec-WebSocket-Extensions: \xff", bad()),
            line("extensions-torn", torn, bad()),
            line("connection-ff", b"Connection: \xff", either()),
            line("upgrade-ff", b"Upgrade: \xff", either()),
            line("origin-ff", b"Origin: http://\xff", either()),
            line("cookie-ff", b"Cookie: a=\xff", either()),
            line("unknown-ff", b"X: \xc3\x28", either()),
        ],
    }
}
