//! The syntax of a request (RFC 9112 §2–§5).

use super::{NO_WEBSOCKET, edited, opens, raw, refused, refused_or_ignored, with_line};
use crate::{
    case::{Expect, Row},
    run::request,
};

pub(super) fn rows() -> Vec<Row> {
    vec![bytes(), versions(), targets(), other_protocols()]
}

fn bytes() -> Row {
    let line = |name: &str, line: &[u8], expect| raw(name, with_line(line), expect);
    let either = || Expect::OpenOrRefuse;
    let bad = || refused(&[400]);
    let change = |name: &str, from: &str, to: &str| raw(name, edited(from, to), either());
    let line_feeds = request("").replace("\r\n", "\n");
    let no_spaces = edited("GET {path} HTTP", "GET{path}HTTP");
    let blank_lines = ["\r\n\r\n", &request("")].concat();
    Row {
        id: "H13",
        title: "bytes that do not belong in a request head",
        section: "RFC 9112 §2.2, §5.1, §5.2; RFC 9110 §5.5",
        required: "400 where the standard says MUST; otherwise refuse the request, or replace the byte with a space",
        cases: vec![
            line("bare-cr-in-value", b"X: a\rb", either()),
            line("nul-in-value", b"X: a\0b", either()),
            line("folded-line", b"X: a\r\n b", either()),
            line("delete-in-value", b"X: a\x7fb", either()),
            line("space-before-colon", b"X : a", bad()),
            line("tab-before-colon", b"X\t: a", bad()),
            line("space-in-name", b"X Y: a", bad()),
            line("empty-name", b": a", bad()),
            line("no-colon", b"X", bad()),
            line("nul-in-name", b"X\0: a", bad()),
            line("beyond-ascii-in-name", b"X\xc3\xa4: a", bad()),
            line("bracket-in-name", b"X(: a", bad()),
            raw("bare-line-feeds", line_feeds, either()),
            raw("blank-lines-before", blank_lines, either()),
            change("space-before-first-field", "Host:", " Host:"),
            change("two-spaces-in-first-line", "GET ", "GET  "),
            raw("no-spaces-in-first-line", no_spaces, bad()),
        ],
    }
}

fn versions() -> Row {
    let version = |name: &str, version: &str, statuses| {
        raw(name, edited("HTTP/1.1", version), refused(statuses))
    };
    // RFC 6455 §4.2.1 (1) requires "HTTP/1.1 or higher".
    let higher = |name: &str, version: &str| {
        let expect = refused_or_ignored(&[400, 505]);
        raw(name, edited("HTTP/1.1", version), expect)
    };
    Row {
        id: "H15",
        title: "versions of HTTP other than 1.1",
        section: "RFC 9110 §7.8, §15.6.6; RFC 9112 §2.3",
        required: "Upgrade is ignored in HTTP/1.0; 505 or 400 for an invalid version",
        cases: vec![
            version("1.0", "HTTP/1.0", NO_WEBSOCKET),
            version("0.9", "HTTP/0.9", &[400, 505]),
            higher("2.0", "HTTP/2.0"),
            higher("9.9", "HTTP/9.9"),
            version("1.1x", "HTTP/1.1x", &[400, 505]),
            version("01.1", "HTTP/01.1", &[400, 505]),
            version("lower-case", "http/1.1", &[400, 505]),
            version("other-name", "HTTQ/1.1", &[400, 505]),
            version("only-name", "HTTP/", &[400, 505]),
        ],
    }
}

fn targets() -> Row {
    let target = |name: &str, target: &str, expect| raw(name, edited("{path}", target), expect);
    let either = || Expect::OpenOrRefuse;
    Row {
        id: "H22",
        title: "request targets",
        section: "RFC 9112 §3.2",
        required: "the absolute form is accepted; an invalid form is refused, 400",
        cases: vec![
            target("absolute", "http://{host}{path}", opens()),
            target("absolute-of-another", "http://other.example/", either()),
            target("two-slashes", "//other.example/", either()),
            target("beyond-ascii", "/\u{e4}", either()),
            target("fragment", "/#a", either()),
            target("asterisk", "*", refused_or_ignored(NO_WEBSOCKET)),
            target("authority", "{host}", refused_or_ignored(NO_WEBSOCKET)),
            target("no-slash", "nothing", refused_or_ignored(NO_WEBSOCKET)),
        ],
    }
}

fn other_protocols() -> Row {
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    let tls = [&hello[..], &[7; 502]].concat();
    let proxy = ["PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n", &request("")].concat();
    let frames = b"\x81\x84\x37\xfa\x21\x3d\x64\x8a\x40\x50\r\n\r\n".to_vec();
    let case = |name: &str, bytes: Vec<u8>| raw(name, bytes, refused(&[400, 405, 501, 505]));
    Row {
        id: "H20",
        title: "protocols other than HTTP",
        section: "RFC 9112 §2.2, §3",
        required: "400, then end the connection",
        cases: vec![
            case("proxy-protocol", proxy.into_bytes()),
            case("smtp", b"HELO client.example\r\n\r\n".to_vec()),
            case("tls-and-lines", [&tls[..], b"\r\n\r\n"].concat()),
            case("socket-frames", frames),
        ],
    }
}
