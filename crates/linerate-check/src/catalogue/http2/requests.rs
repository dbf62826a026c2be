//! Requests that must not open a WebSocket, and fields that HTTP/2 does not use (RFC 8441 §4, §5,
//! RFC 9113 §8.3, §8.5).

use super::{Maker, headers, spam, spams};
use crate::{
    case::{Case, Row},
    http2::{
        Fate, Fields,
        frame::{END_HEADERS, END_STREAM, HEADERS, frame},
        hpack::block,
    },
};

pub(super) fn rows(maker: Maker<'_>) -> Vec<Row> {
    vec![
        pseudo(maker),
        others(maker),
        versions(maker),
        not_used(maker),
    ]
}

/// Returns the fields with one of them repeated with this value.
fn twice(maker: Maker<'_>, name: &str, value: &str) -> Fields {
    let mut fields = maker.0.connect();
    fields.insert(5, (name.into(), value.into()));
    fields
}

fn pseudo(maker: Maker<'_>) -> Row {
    let mut behind = maker.without(":path");
    behind.push((b":path".to_vec(), maker.0.path.clone().into()));
    let method = |method: &str| maker.with(":method", method);
    let malformed = |(name, fields): (&str, Fields)| maker.malformed(name, &fields);
    let cases = [
        ("method-missing", maker.without(":method")),
        ("scheme-missing", maker.without(":scheme")),
        ("path-missing", maker.without(":path")),
        ("path-empty", maker.with(":path", "")),
        ("protocol-missing", maker.without(":protocol")),
        ("protocol-with-get", method("GET")),
        ("protocol-with-post", method("POST")),
        ("method-in-lower-case", method("connect")),
        ("method-twice", twice(maker, ":method", "CONNECT")),
        ("protocol-twice", twice(maker, ":protocol", "websocket")),
        ("scheme-twice", twice(maker, ":scheme", &maker.0.scheme)),
        ("path-twice", twice(maker, ":path", &maker.0.path)),
        ("authority-twice", twice(maker, ":authority", "example.com")),
        ("path-behind-a-field", behind),
        ("unknown", twice(maker, ":spam", "ham")),
        ("status", twice(maker, ":status", "200")),
        ("name-of-a-colon", twice(maker, ":", "ham")),
        ("host-of-another", maker.with("host", "evil.example")),
        (
            "authority-with-a-user",
            maker.with(":authority", format!("a@{}", maker.0.authority)),
        ),
    ];
    Row {
        id: "S08",
        title: "requests with invalid pseudo-header fields",
        section: "RFC 8441 §4; RFC 9113 §8.1.1, §8.3, §8.5",
        required: "reset the stream with PROTOCOL_ERROR, or answer 400",
        cases: cases.into_iter().map(malformed).collect(),
    }
}

fn others(maker: Maker<'_>) -> Row {
    let case = |(name, protocol): (&str, &str)| {
        let request = headers(1, &maker.with(":protocol", protocol));
        maker.beside(name, vec![request], vec![Fate::Refused(&[501])])
    };
    let cases = [
        ("connect-udp", "connect-udp"),
        ("h2c", "h2c"),
        ("empty", ""),
        ("list", "websocket, connect-udp"),
        ("with-a-version", "websocket/13"),
    ];
    Row {
        id: "S21",
        title: "protocols other than websocket",
        section: "RFC 8441 §4; RFC 9220 §3; RFC 9110 §15.6.2",
        required: "answer 501",
        cases: cases.into_iter().map(case).collect(),
    }
}

fn versions(maker: Maker<'_>) -> Row {
    let case = |name: &str, fields: &Fields| {
        let fates = vec![Fate::Refused(&[400, 426])];
        maker.beside(name, vec![headers(1, fields)], fates)
    };
    let mut cases = vec![case("missing", &maker.without("sec-websocket-version"))];
    for version in ["", "0", "8", "12", "14", "013", "13, 8", "x"] {
        let name = format!("version-{}", version.replace(", ", "-"));
        cases.push(case(&name, &maker.with("sec-websocket-version", version)));
    }
    let mut both = maker.0.connect();
    both.push((b"sec-websocket-version".to_vec(), b"13".to_vec()));
    cases.push(case("twice", &both));
    Row {
        id: "S22",
        title: "other versions of the protocol, over HTTP/2",
        section: "RFC 8441 §5; RFC 6455 §4.2.1 (6), §4.4, §11.3.5",
        required: "answer 400 or 426",
        cases,
    }
}

/// Fields that only the HTTP/1.1 handshake uses, and a request that ends its direction.
fn not_used(maker: Maker<'_>) -> Row {
    let opens = |name: &str, fields: Fields| -> Case {
        let parts = vec![headers(1, &fields), spam(1)];
        maker.beside(name, parts, vec![spams()])
    };
    let ended = frame(
        HEADERS,
        END_HEADERS | END_STREAM,
        1,
        block(&maker.0.connect()),
    );
    let key = "dGhlIHNhbXBsZSBub25jZQ==";
    Row {
        id: "S23",
        title: "requests with fields and flags that HTTP/2 does not use",
        section: "RFC 8441 §5",
        required: "ignore the fields; answer a request that ends its direction",
        cases: vec![
            opens("key", maker.with("sec-websocket-key", key)),
            opens("key-that-is-none", maker.with("sec-websocket-key", "Spam")),
            opens("accept", maker.with("sec-websocket-accept", "Spam")),
            maker.beside("ends-with-its-request", vec![ended], vec![Fate::Answered]),
        ],
    }
}
