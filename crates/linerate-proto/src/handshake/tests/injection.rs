//! Strings of the application that would inject header lines: H23.

use super::*;
use alloc::vec;

const KEY: [u8; 16] = *b"the sample nonce";

fn client() -> ClientHandshake {
    ClientHandshake::new("example.com", "/chat", KEY).unwrap()
}

/// Values that an attacker could make an application put into a header.
const SPLITTERS: [&str; 6] = [
    "a\r\nX: b",
    "a\nX: b",
    "a\rX: b",
    "a\0",
    "a\u{7F}",
    "\u{1}a",
];

#[test]
fn h23_the_client_refuses_line_breaks_in_host_and_target() {
    for splitter in SPLITTERS {
        let host = ClientHandshake::new(splitter, "/", KEY);
        assert_eq!(host.unwrap_err(), BuildError::HostInvalid);
        let target = ClientHandshake::new("a", &format!("/{splitter}"), KEY);
        let offset = 1 + splitter
            .bytes()
            .position(|byte| !byte.is_ascii_graphic())
            .unwrap();
        assert_eq!(target.unwrap_err(), BuildError::TargetInvalid { offset });
    }
    for (target, offset) in [
        ("", 0),
        ("a", 0),
        ("/ ", 1),
        ("/a#b", 2),
        ("/\u{E4}", 1),
        ("?a", 0),
    ] {
        let error = ClientHandshake::new("a", target, KEY).unwrap_err();
        assert_eq!(error, BuildError::TargetInvalid { offset }, "{target:?}");
    }
    for host in ["", "a b", "a/b", "http://a", "a:x", "user@a"] {
        let error = ClientHandshake::new(host, "/", KEY).unwrap_err();
        assert_eq!(error, BuildError::HostInvalid, "{host:?}");
    }
}

#[test]
fn h23_the_client_refuses_line_breaks_in_subprotocols() {
    for splitter in SPLITTERS.into_iter().chain(["", "a,b", "a b", "\u{E4}"]) {
        let error = client().with_subprotocol(splitter).unwrap_err();
        assert_eq!(error, BuildError::SubprotocolInvalid, "{splitter:?}");
    }
    let error = client()
        .with_subprotocol("a")
        .unwrap()
        .with_subprotocol("a")
        .unwrap_err();
    assert_eq!(error, BuildError::SubprotocolDuplicate);
}

#[test]
fn h23_both_sides_refuse_line_breaks_in_headers() {
    let request = request(VALID);
    let upgrade = request.websocket().unwrap();
    let errors = |name: &str, value: &str| {
        let refusal = Refusal::new(401, "").unwrap();
        [
            client().with_header(name, value).unwrap_err(),
            upgrade.accept().with_header(name, value).unwrap_err(),
            refusal.with_header(name, value).unwrap_err(),
        ]
    };
    for splitter in SPLITTERS {
        let offset = splitter
            .bytes()
            .position(|byte| byte < 0x20 || byte == 0x7F)
            .unwrap();
        assert_eq!(
            errors("X", splitter),
            [BuildError::HeaderValueInvalid { offset }; 3]
        );
        assert_eq!(
            errors(splitter, "a"),
            [BuildError::HeaderNameInvalid { offset }; 3]
        );
    }
    for (name, offset) in [("", 0), ("a b", 1), ("a:", 1), ("ab\u{E4}", 2)] {
        assert_eq!(
            errors(name, "a"),
            [BuildError::HeaderNameInvalid { offset }; 3],
            "{name:?}"
        );
    }
}

#[test]
fn h23_both_sides_refuse_headers_of_the_handshake_itself() {
    let request = request(VALID);
    let upgrade = request.websocket().unwrap();
    for name in [
        "Connection",
        "CONTENT-LENGTH",
        "host",
        "Origin",
        "Transfer-Encoding",
        "upgrade",
        "Sec-WebSocket-Accept",
        "sec-websocket-extensions",
        "Sec-WebSocket-",
    ] {
        let reserved = BuildError::HeaderReserved;
        assert_eq!(client().with_header(name, "a").unwrap_err(), reserved);
        assert_eq!(
            upgrade.accept().with_header(name, "a").unwrap_err(),
            reserved
        );
        let refusal = Refusal::new(401, "").unwrap();
        assert_eq!(refusal.with_header(name, "a").unwrap_err(), reserved);
    }
    let refusal = Refusal::new(401, "").unwrap();
    let error = refusal
        .with_header("content-type", "text/html")
        .unwrap_err();
    assert_eq!(error, BuildError::HeaderReserved);
}

#[test]
fn h23_other_characters_than_line_breaks_are_sent() {
    let request = request(VALID);
    let upgrade = request.websocket().unwrap();
    let mut wire = Vec::new();
    upgrade
        .accept()
        .with_header("Set-Cookie", "a=\u{E4}\tb")
        .unwrap()
        .encode(&mut wire);
    let end = "=\r\nSet-Cookie: a=\u{E4}\tb\r\n\r\n";
    assert_eq!(text(wire), ACCEPTED.replacen("=\r\n\r\n", end, 1));
}

#[test]
fn refusals_accept_only_error_statuses() {
    for status in [0, 100, 101, 200, 299, 304, 600, u16::MAX] {
        let error = Refusal::new(status, "").unwrap_err();
        assert_eq!(error, BuildError::StatusInvalid { status });
    }
    for status in [300, 401, 599] {
        assert_eq!(Refusal::new(status, "").unwrap().status(), status);
    }
    let refusal = Refusal::new(426, "a")
        .unwrap()
        .with_header("X", "b")
        .unwrap();
    assert_eq!(refusal.body(), b"a\n");
    let headers: Vec<_> = refusal.headers().collect();
    let expected = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade, close"),
        ("Sec-WebSocket-Version", "13"),
        ("X", "b"),
        ("Content-Type", "text/plain; charset=utf-8"),
    ];
    assert_eq!(headers, expected);
    let mut wire = Vec::new();
    Refusal::new(418, "a\r\nb").unwrap().encode(&mut wire);
    let expected = "HTTP/1.1 418 \r\nConnection: close\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n\r\na\r\nb\n";
    assert_eq!(text(wire), expected);
}

#[test]
fn a_status_has_its_standard_phrase() {
    // RFC 9110 §15: the statuses that can answer a request for a WebSocket.
    let known = [
        300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 408, 409, 410, 413, 414, 421, 426,
        429, 431, 500, 501, 502, 503, 504, 505,
    ];
    let mut phrases = Vec::new();
    for status in (300..=599).filter(|status| *status != 304) {
        let mut wire = Vec::new();
        Refusal::new(status, "").unwrap().encode(&mut wire);
        let wire = text(wire);
        let (line, _) = wire.split_once("\r\n").unwrap();
        let phrase = line.strip_prefix(&format!("HTTP/1.1 {status} ")).unwrap();
        assert_eq!(!phrase.is_empty(), known.contains(&status), "{line}");
        phrases.push(String::from(phrase));
    }
    phrases.retain(|phrase| !phrase.is_empty());
    phrases.sort_unstable();
    phrases.dedup();
    assert_eq!(phrases.len(), known.len(), "two statuses share a phrase");
}

#[test]
fn invalid_parts_are_refused_with_the_reason() {
    let control = format!("{}", BuildError::HeaderValueInvalid { offset: 7 });
    assert!(control.contains("byte 7"), "{control}");
    let status = format!("{}", BuildError::StatusInvalid { status: 99 });
    assert!(status.contains("99"), "{status}");
}

#[test]
fn refusals_have_bodies_of_any_type_up_to_the_limit() {
    let max = Refusal::BODY_BYTES_MAX;
    let refusal = |body: Vec<u8>| Refusal::new(401, "a").unwrap().with_body("x/y", body);
    let mut output = Vec::new();
    refusal(b"{}".to_vec()).unwrap().encode(&mut output);
    let expected = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Type: x/y\r\n\
        Content-Length: 2\r\n\r\n{}";
    assert_eq!(String::from_utf8(output).unwrap(), expected);

    assert_eq!(refusal(vec![0; max]).unwrap().body().len(), max);
    let too_large = BuildError::BodyTooLarge {
        bytes: max + 1,
        bytes_max: max,
    };
    assert_eq!(refusal(vec![0; max + 1]).unwrap_err(), too_large);
    assert!(Refusal::new(401, &"a".repeat(max - 1)).is_ok());
    assert_eq!(Refusal::new(401, &"a".repeat(max)).unwrap_err(), too_large);

    let injected = Refusal::new(401, "").unwrap().with_body("x/y\r\nX: z", "");
    let offset = 3;
    assert_eq!(
        injected.unwrap_err(),
        BuildError::HeaderValueInvalid { offset }
    );
}
