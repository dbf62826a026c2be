//! The opening handshake over HTTP/1.1 (RFC 6455 §4, RFC 9110, RFC 9112).

mod fields;
mod syntax;

use super::{sent, text};
use crate::{
    case::{Case, Expect, Opening, Row, Wait},
    frame::{Frame, Role},
    http::KEY,
    run::request,
};

/// The statuses that a server may answer to a request that is not for a WebSocket, but may be a
/// valid HTTP request.
const NO_WEBSOCKET: &[u16] = &[
    200, 204, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 406, 410, 421, 426, 501, 505,
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        missing(),
        repeated(),
        lenient(),
        keys(),
        versions(),
        eager(),
        methods(),
        lists(),
        other_key(),
    ];
    rows.extend(syntax::rows());
    rows.extend(fields::rows());
    rows.sort_by_key(|row| row.id);
    rows
}

/// Creates an input that begins with these bytes. If a WebSocket has to open, a message follows.
pub(super) fn raw(name: impl Into<String>, bytes: impl Into<Vec<u8>>, expect: Expect) -> Case {
    let mut stages = vec![bytes.into()];
    if matches!(expect, Expect::Open(_)) {
        stages.push(spam());
    }
    sent(name, Opening::Nothing, stages, Wait::Answer, expect)
}

/// Returns the bytes of a request with this line after its fields.
fn with_line(line: &[u8]) -> Vec<u8> {
    let head = request("");
    let head = head.strip_suffix("\r\n").unwrap_or(&head);
    [head.as_bytes(), line, b"\r\n\r\n"].concat()
}

/// Returns the request with the first occurrence of `from` replaced by `to`.
fn edited(from: &str, to: &str) -> String {
    request("").replacen(from, to, 1)
}

/// Returns the bytes of a message, which shows that the WebSocket works.
fn spam() -> Vec<u8> {
    let mut wire = Vec::new();
    Frame::new(0x1, "Spam").encode(Role::Server, &mut wire);
    wire
}

/// Expects a WebSocket that opens and echoes the message.
fn opens() -> Expect {
    Expect::Open(vec![text("Spam")])
}

fn refused(statuses: &'static [u16]) -> Expect {
    Expect::Refuse {
        statuses,
        fields: &[],
        alone: false,
        may_ignore: false,
    }
}

/// Expects a refusal. Ignoring the faulty field is permitted.
fn refused_or_ignored(statuses: &'static [u16]) -> Expect {
    Expect::Refuse {
        statuses,
        fields: &[],
        alone: false,
        may_ignore: true,
    }
}

fn missing() -> Row {
    let without = |name: &str, line: &str, statuses| raw(name, edited(line, ""), refused(statuses));
    let upgrade = |name: &str, value: &str| {
        let request = edited("Upgrade: websocket", &format!("Upgrade: {value}"));
        raw(name, request, refused(NO_WEBSOCKET))
    };
    let connection = |name: &str, value: &str| {
        let request = edited("Connection: Upgrade", &format!("Connection: {value}"));
        raw(name, request, refused(NO_WEBSOCKET))
    };
    let key = format!("Sec-WebSocket-Key: {KEY}\r\n");
    Row {
        id: "H01",
        title: "a required field is missing",
        section: "RFC 6455 §4.2.1; RFC 9112 §3.2",
        required: "an HTTP error: 400; 426 for a missing version",
        cases: vec![
            without("host", "Host: {host}\r\n", &[400]),
            without("upgrade", "Upgrade: websocket\r\n", NO_WEBSOCKET),
            without("connection", "Connection: Upgrade\r\n", NO_WEBSOCKET),
            without("key", &key, &[400]),
            without("version", "Sec-WebSocket-Version: 13\r\n", &[400, 426]),
            upgrade("other-protocol", "h2c"),
            upgrade("websocket-in-a-word", "xwebsocketx"),
            connection("upgrade-in-a-word", "Upgrades"),
            connection("connection-close", "close"),
        ],
    }
}

fn repeated() -> Row {
    let again = |name: &str, line: &str, statuses| {
        raw(name, request(&format!("{line}\r\n")), refused(statuses))
    };
    let same_key = format!("Sec-WebSocket-Key: {KEY}");
    let other_key = "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==";
    let lengths = "Content-Length: 1\r\nContent-Length: 2";
    let joined = edited(KEY, &format!("{KEY}, {KEY}"));
    Row {
        id: "H02",
        title: "a field that may appear only once appears twice",
        section: "RFC 6455 §11.3.1, §11.3.5; RFC 9112 §3.2, §6.3",
        required: "an HTTP error, 400",
        cases: vec![
            again("host-same", "Host: {host}", &[400]),
            again("host-other", "Host: other.example", &[400]),
            again("key-same", &same_key, &[400]),
            again("key-other", other_key, &[400]),
            again("version-same", "Sec-WebSocket-Version: 13", &[400, 426]),
            again("version-other", "Sec-WebSocket-Version: 8", &[400, 426]),
            again("content-lengths", lengths, &[400]),
            raw("key-joined", joined, refused(&[400])),
        ],
    }
}

fn lenient() -> Row {
    let change = |name: &str, from: &str, to: &str| raw(name, edited(from, to), opens());
    let connection = |name: &str, to: &str| change(name, "Connection: Upgrade", to);
    let upgrade = |name: &str, to: &str| change(name, "Upgrade: websocket", to);
    let list = edited("Upgrade: websocket", "Upgrade: h2c, websocket");
    let two = "Connection: keep-alive\r\nConnection: Upgrade";
    let tab = "Connection: keep-alive ,\tUpgrade";
    let unknown = request("X-Unknown: a, \"b\"; c=d\r\n");
    Row {
        id: "H03",
        title: "case, white space and lists",
        section: "RFC 6455 §4.2.1; RFC 9110 §5.1, §5.6",
        required: "accept",
        cases: vec![
            raw("plain", request(""), opens()),
            connection("connection-list", "Connection: keep-alive, Upgrade"),
            connection("connection-case", "connection: keep-alive, uPgRaDe"),
            connection("connection-without-space", "Connection:Upgrade"),
            connection("connection-spaces", "Connection: \t Upgrade \t"),
            connection("connection-list-spaces", tab),
            connection("connection-twice", two),
            connection("connection-empty-elements", "Connection: , Upgrade,"),
            upgrade("upgrade-case", "UPGRADE: WebSocket"),
            upgrade("upgrade-all-capitals", "Upgrade: WEBSOCKET"),
            // A server may ignore Upgrade (RFC 9110 §7.8).
            raw("upgrade-list", list, Expect::OpenOrRefuse),
            change("key-name-case", "Sec-WebSocket-Key", "sec-websocket-KEY"),
            change("version-spaces", "Version: 13", "Version:  13 "),
            raw("unknown-field", unknown, opens()),
            raw("empty-field", request("X-Empty:\r\n"), opens()),
        ],
    }
}

fn keys() -> Row {
    let keys = [
        ("empty", ""),
        ("three-bytes", "AAAA"),
        ("fifteen-bytes", "AQIDBAUGBwgJCgsMDQ4P"),
        ("seventeen-bytes", "AQIDBAUGBwgJCgsMDQ4PEBE="),
        ("twenty-four-bytes", "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcY"),
        ("one-padding-short", "dGhlIHNhbXBsZSBub25jZQ="),
        ("no-padding", "dGhlIHNhbXBsZSBub25jZQ"),
        ("one-padding-more", "dGhlIHNhbXBsZSBub25jZQ==="),
        ("space-inside", "dGhlIHNhbXBs ZSBub25jZQ=="),
        ("something-behind", "dGhlIHNhbXBsZSBub25jZQ== x"),
        ("alphabet-for-urls", "-_-_-_-_-_-_-_-_-_-_-w=="),
        ("exclamation-marks", "!!!!!!!!!!!!!!!!!!!!!!=="),
        ("hexadecimal", "000102030405060708090a0b0c0d0e0f"),
    ];
    let case = |(name, key): (&str, &str)| raw(name, edited(KEY, key), refused(&[400]));
    Row {
        id: "H04",
        title: "keys that are not the Base64 of sixteen bytes",
        section: "RFC 6455 §4.2.1 (5)",
        required: "an HTTP error, 400",
        cases: keys.into_iter().map(case).collect(),
    }
}

fn versions() -> Row {
    let well_formed = ["0", "1", "4", "6", "7", "8", "12", "14", "130", "255"];
    let malformed = ["", "256", "13, 8", "8, 13", "013", "-13", "13.0", "x"];
    let case = |version: &str, expect| {
        let name = format!("version-{}", version.replace(", ", "-and-"));
        let request = edited("Version: 13", &format!("Version: {version}"));
        raw(name, request, expect)
    };
    let other = |version: &str| {
        let expect = Expect::Refuse {
            statuses: &[400, 426],
            fields: &[("sec-websocket-version", "13")],
            alone: false,
            // Servers may support drafts of the protocol, whose frames are the same from version 7
            // on.
            may_ignore: matches!(version, "7" | "8"),
        };
        case(version, expect)
    };
    let none = |version: &str| case(version, refused(&[400, 426]));
    let malformed = malformed.into_iter().map(none);
    Row {
        id: "H05",
        title: "other versions of the protocol",
        section: "RFC 6455 §4.2.1 (6), §4.2.2, §4.4",
        required: "an HTTP error (426) with Sec-WebSocket-Version: 13",
        cases: well_formed
            .into_iter()
            .map(other)
            .chain(malformed)
            .collect(),
    }
}

/// Frames that follow the request before it is answered, and requests in pieces.
fn eager() -> Row {
    let request = request("").into_bytes();
    // §4.1: a client "MUST wait for a response from the server before sending any further data", so
    // a server may accept or refuse such data.
    let behind = |name: &str, count: usize| {
        let bytes = [&request[..], &spam().repeat(count)].concat();
        raw(name, bytes, Expect::OpenOrRefuse)
    };
    let in_lines = request.split_inclusive(|byte| *byte == b'\n');
    let (head, end) = request.split_at(request.len() - 1);
    Row {
        id: "H08",
        title: "requests in pieces, and frames in the segment of the request",
        section: "RFC 6455 §4.1; RFC 9112 §2.2",
        required: "pieces are put together; early frames may be accepted or refused",
        cases: vec![
            behind("one-frame", 1),
            behind("three-frames", 3),
            // Not byte by byte, because `{host}` and `{path}` are replaced stage by stage.
            in_pieces("request-in-lines", in_lines),
            in_pieces("last-byte-apart", [head, end]),
        ],
    }
}

/// Creates an input that sends a request in several segments, and a message once it is answered.
fn in_pieces<'a>(name: &str, pieces: impl IntoIterator<Item = &'a [u8]>) -> Case {
    let stages = pieces.into_iter().map(<[u8]>::to_vec).chain([spam()]);
    let mut case = sent(name, Opening::Nothing, stages, Wait::Moment, opens());
    for stage in case.input.stages.iter_mut().rev().take(2) {
        stage.wait = Wait::Answer;
    }
    case
}

fn methods() -> Row {
    let case = |method: &str| {
        let request = edited("GET ", &format!("{method} "));
        raw(method.to_ascii_lowercase(), request, refused(NO_WEBSOCKET))
    };
    let lower = raw(
        "get-in-lower-case",
        edited("GET ", "get "),
        refused(NO_WEBSOCKET),
    );
    let methods = [
        "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE", "CONNECT", "GETT",
    ];
    Row {
        id: "H16",
        title: "methods other than GET",
        section: "RFC 6455 §4.1, §4.2.1 (1)",
        required: "an HTTP error (405), and no WebSocket",
        cases: methods.into_iter().map(case).chain([lower]).collect(),
    }
}

/// Offers of subprotocols and extensions.
fn lists() -> Row {
    let protocols = |name: &str, list: &str, expect| {
        raw(
            name,
            request(&format!("Sec-WebSocket-Protocol: {list}\r\n")),
            expect,
        )
    };
    let extensions = |name: &str, list: &str, expect| {
        raw(
            name,
            request(&format!("Sec-WebSocket-Extensions: {list}\r\n")),
            expect,
        )
    };
    let many: String = (0..1_500).map(|n| format!("x{n}, ")).collect();
    let many = many.trim_end_matches(", ");
    let either = || Expect::OpenOrRefuse;
    let invalid = || refused_or_ignored(&[400]);
    Row {
        id: "H18",
        title: "unknown or malformed subprotocols and extensions",
        section: "RFC 6455 §4.2.2, §9.1",
        required: "nothing is accepted that was not offered; malformed lists of extensions are refused",
        cases: vec![
            protocols("protocols-unknown", "soap, wamp", either()),
            protocols("protocol-twice", "chat, chat", either()),
            protocols("protocols-many", many, either()),
            protocols("protocol-no-token", "a b", either()),
            protocols("protocol-empty", "", either()),
            extensions("extension-unknown", "x-unknown; a=b; c=\"d\"; e", opens()),
            extensions("extensions-unknown", "x-one, x-two; a", opens()),
            extensions("extensions-many", many, either()),
            extensions("quote-without-end", "x; y=\"z", invalid()),
            extensions("parameter-without-name", "x; =y", invalid()),
            extensions("name-no-token", "x y", invalid()),
            extensions("semicolon-alone", ";", invalid()),
        ],
    }
}

fn other_key() -> Row {
    let case = |name: &str, key: &str| raw(name, edited(KEY, key), opens());
    Row {
        id: "H24",
        title: "the response to other keys",
        section: "RFC 6455 §4.2.2 (5)",
        required: "Sec-WebSocket-Accept is computed from the key as sent",
        cases: vec![
            case("zeros", "AAAAAAAAAAAAAAAAAAAAAA=="),
            case("ones", "/////////////////////w=="),
            case("one-to-sixteen", "AQIDBAUGBwgJCgsMDQ4PEA=="),
            case("plus-and-slash", "+/+/+/+/+/+/+/+/+/+/+w=="),
        ],
    }
}
