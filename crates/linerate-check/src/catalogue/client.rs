//! Responses to a client's request (RFC 6455 §4.1), valid and invalid.

use super::{Wire, pong, sent, text};
use crate::{
    case::{Case, Expect, Opening, Row, Wait},
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
    let bytes = [answer.as_bytes(), &wire.bytes(frames)].concat();
    sent(name, Opening::Nothing, [bytes], Wait::Answer, expect)
}

/// Creates an input from a response that accepts an extension, which the client must reject.
pub(super) fn agreeing(name: &str, extension: &str) -> Case {
    let last = "{accept}\r\n";
    let more = format!("{last}Sec-WebSocket-Extensions: {extension}\r\n");
    rejected(Wire(Role::Client), name, last, &more)
}

/// Creates an input from a response that the client must reject, followed by a Ping.
fn rejected(wire: Wire, name: &str, from: &str, to: &str) -> Case {
    let ping = [Frame::new(0x9, "?")];
    case(wire, name, (from, to), &ping, Expect::Reject)
}

fn in_order(wire: Wire) -> Row {
    let list = "connection: keep-alive, upgrade";
    let accept = "Sec-WebSocket-Accept";
    let more = "\r\nServer: x\r\nX-Empty:\r\nUpgrade";
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
            opens("connection-list", "Connection: Upgrade", list),
            opens("accept-name-case", accept, "sec-websocket-ACCEPT"),
            opens("other-reason", "Switching Protocols", "Let's go"),
            opens("no-reason", "Switching Protocols", ""),
            opens("more-fields", "\r\nUpgrade", more),
            case(wire, "two-frames", ("", ""), &frames, both),
        ],
    }
}

fn wrong(wire: Wire) -> Row {
    let accept = "Sec-WebSocket-Accept: {accept}\r\n";
    let rejected = |(name, from, to)| rejected(wire, name, from, to);
    let other_accept = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    let redirect = "302 Found\r\nLocation: ws://127.0.0.1:1/";
    let extension = &format!("{accept}Sec-WebSocket-Extensions: x-unknown\r\n");
    let protocol = &format!("{accept}Sec-WebSocket-Protocol: x-unknown\r\n");
    let connection = "Connection: Upgrade";
    let first = "101 Switching Protocols";
    let answers = [
        ("accept-of-another", "{accept}", other_accept),
        ("accept-empty", "{accept}", ""),
        ("accept-too-long", "{accept}", "{accept}="),
        ("accept-lower-case", "{accept}", "{accept-lower}"),
        ("accept-missing", accept, ""),
        ("upgrade-missing", "Upgrade: websocket\r\n", ""),
        ("upgrade-to-another", "Upgrade: websocket", "Upgrade: h2c"),
        ("connection-missing", "Connection: Upgrade\r\n", ""),
        ("connection-close", connection, "Connection: close"),
        ("status-200", first, "200 OK"),
        ("status-204", first, "204 No Content"),
        ("status-302", first, redirect),
        ("status-400", first, "400 Bad Request"),
        ("status-401", first, "401 Unauthorized"),
        ("status-404", first, "404 Not Found"),
        ("status-426", first, "426 Upgrade Required"),
        ("status-500", first, "500 Internal Server Error"),
        ("status-503", first, "503 Service Unavailable"),
        ("extension-not-offered", accept, extension),
        ("protocol-not-offered", accept, protocol),
        ("space-before-colon", connection, "Connection : Upgrade"),
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
