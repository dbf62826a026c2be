//! Responses to a client's request (RFC 6455 §4.1), valid and invalid.

use super::{Wire, pong, text};
use crate::{
    case::{Case, Expect, Input, Opening, Row, Stage, Wait},
    frame::{Frame, Role},
};

/// The response that opens a WebSocket. `{accept}` stands for the value that matches the client's
/// key.
pub(crate) const ACCEPTED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
     Sec-WebSocket-Accept: {accept}\r\n\r\n";

pub(super) fn rows(wire: Wire) -> Vec<Row> {
    vec![in_order(wire), wrong(wire)]
}

/// Creates an input from the response, with `from` replaced by `to`, followed by frames.
fn case(
    wire: Wire,
    name: &str,
    (from, to): (&str, &str),
    frames: &[Frame],
    expect: Expect,
) -> Case {
    let answer = ACCEPTED.replacen(from, to, 1);
    Case {
        name: name.into(),
        input: Input {
            opening: Opening::Nothing,
            stages: vec![Stage {
                bytes: [answer.as_bytes(), &wire.bytes(frames)].concat(),
                wait: Wait::Answer,
            }],
            ends: false,
        },
        expect,
    }
}

/// Creates an input from a response that accepts an extension, which the client must reject.
pub(super) fn agreeing(name: &str, extension: &str) -> Case {
    let last = "{accept}\r\n";
    let more = format!("{last}Sec-WebSocket-Extensions: {extension}\r\n");
    let ping = [Frame::new(0x9, "?")];
    case(
        Wire(Role::Client),
        name,
        (last, &more),
        &ping,
        Expect::Reject,
    )
}

fn in_order(wire: Wire) -> Row {
    let opens = |name: &str, from: &str, to: &str| {
        let expect = Expect::Answers(vec![text("Spam")]);
        case(wire, name, (from, to), &[Frame::new(0x1, "Spam")], expect)
    };
    let frames = [Frame::new(0x9, "?"), Frame::new(0x1, "Spam")];
    let both = Expect::Answers(vec![pong("?"), text("Spam")]);
    Row {
        id: "C08",
        title: "valid responses, with frames in the same segment",
        section: "RFC 6455 §4.1; RFC 9112 §4",
        required: "accept, and lose nothing",
        cases: vec![
            opens("plain", "", ""),
            opens("upgrade-case", "Upgrade: websocket", "UPGRADE: WebSocket"),
            opens(
                "connection-list",
                "Connection: Upgrade",
                "connection: keep-alive, upgrade",
            ),
            opens(
                "accept-name-case",
                "Sec-WebSocket-Accept",
                "sec-websocket-ACCEPT",
            ),
            opens("other-reason", "Switching Protocols", "Let's go"),
            opens("no-reason", "Switching Protocols", ""),
            opens(
                "more-fields",
                "\r\nUpgrade",
                "\r\nServer: x\r\nX-Empty:\r\nUpgrade",
            ),
            case(wire, "two-frames", ("", ""), &frames, both),
        ],
    }
}

fn wrong(wire: Wire) -> Row {
    let rejected = |(name, from, to): (&str, &str, &str)| {
        case(
            wire,
            name,
            (from, to),
            &[Frame::new(0x9, "?")],
            Expect::Reject,
        )
    };
    let accept = "Sec-WebSocket-Accept: {accept}\r\n";
    let first = "101 Switching Protocols";
    let answers = [
        (
            "accept-of-another",
            "{accept}",
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
        ),
        ("accept-empty", "{accept}", ""),
        ("accept-too-long", "{accept}", "{accept}="),
        ("accept-lower-case", "{accept}", "{accept-lower}"),
        ("accept-missing", accept, ""),
        ("upgrade-missing", "Upgrade: websocket\r\n", ""),
        ("upgrade-to-another", "Upgrade: websocket", "Upgrade: h2c"),
        ("connection-missing", "Connection: Upgrade\r\n", ""),
        (
            "connection-close",
            "Connection: Upgrade",
            "Connection: close",
        ),
        ("status-200", first, "200 OK"),
        ("status-204", first, "204 No Content"),
        (
            "status-302",
            first,
            "302 Found\r\nLocation: ws://127.0.0.1:1/",
        ),
        ("status-400", first, "400 Bad Request"),
        ("status-401", first, "401 Unauthorized"),
        ("status-404", first, "404 Not Found"),
        ("status-426", first, "426 Upgrade Required"),
        ("status-500", first, "500 Internal Server Error"),
        ("status-503", first, "503 Service Unavailable"),
        (
            "extension-not-offered",
            accept,
            "Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Extensions: x-unknown\r\n",
        ),
        (
            "protocol-not-offered",
            accept,
            "Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: x-unknown\r\n",
        ),
        (
            "space-before-colon",
            "Connection: Upgrade",
            "Connection : Upgrade",
        ),
        ("no-http", "HTTP/1.1", "HTTQ/1.1"),
    ];
    Row {
        id: "C03",
        title: "responses that do not open a WebSocket",
        section: "RFC 6455 §4.1, §4.2.2",
        required: "fail the connection, and send nothing",
        cases: answers.into_iter().map(rejected).collect(),
    }
}
