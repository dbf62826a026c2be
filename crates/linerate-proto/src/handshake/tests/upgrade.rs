//! The rules for a client's opening handshake (RFC 6455 §4.2.1): H01 to H05, H16.

use super::*;

#[test]
fn the_example_of_the_rfc_is_accepted() {
    accepts(VALID);
}

#[test]
fn h01_each_missing_header_is_refused() {
    for (line, status, message) in [
        (
            "Host: example.com\r\n",
            "400 Bad Request",
            "the Host header is missing",
        ),
        (
            "Upgrade: websocket\r\n",
            "400 Bad Request",
            "the Upgrade header lacks the token websocket",
        ),
        (
            "Connection: Upgrade\r\n",
            "400 Bad Request",
            "the Connection header lacks the token upgrade",
        ),
        (
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
            "400 Bad Request",
            "the Sec-WebSocket-Key header is missing",
        ),
        (
            "Sec-WebSocket-Version: 13\r\n",
            "426 Upgrade Required",
            "the Sec-WebSocket-Version header must be 13",
        ),
    ] {
        refuses(edited(line, ""), status, message);
    }
}

#[test]
fn h01_a_header_with_a_wrong_value_counts_as_missing() {
    for (line, message) in [
        (
            "Upgrade: websocket",
            "the Upgrade header lacks the token websocket",
        ),
        (
            "Connection: Upgrade",
            "the Connection header lacks the token upgrade",
        ),
    ] {
        for value in [
            "",
            " ",
            " h2c",
            " xwebsocket",
            " Upgrades",
            " web socket up grade",
        ] {
            let (name, _) = line.split_once(' ').unwrap();
            let edited = edited(line, &format!("{name}{value}"));
            refuses(edited, "400 Bad Request", message);
        }
    }
}

#[test]
fn h02_headers_that_must_be_single_are_refused_if_repeated() {
    for (name, line) in [
        ("Host", "Host: example.com"),
        ("Host", "hOST: evil.example"),
        (
            "Sec-WebSocket-Key",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        ),
        (
            "Sec-WebSocket-Key",
            "Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==",
        ),
        ("Sec-WebSocket-Version", "Sec-WebSocket-Version: 13"),
        ("Sec-WebSocket-Version", "Sec-WebSocket-Version: 8"),
    ] {
        refuses(
            with_line(line),
            "400 Bad Request",
            &format!("the {name} header appears twice"),
        );
    }
    for lengths in [
        "Content-Length: 0\r\nContent-Length: 0",
        "Content-Length: 0\r\nContent-Length: 5",
    ] {
        refuses(
            with_line(lengths),
            "400 Bad Request",
            "the Content-Length header appears twice",
        );
    }
}

#[test]
fn h02_joining_two_values_by_a_comma_is_refused() {
    refuses(
        edited("example.com", "example.com,example.com"),
        "400 Bad Request",
        "the Host header is invalid",
    );
    refuses(
        edited("Host: example.com", "Host: example.com, evil.example"),
        "400 Bad Request",
        "the Host header is invalid",
    );
    refuses(
        edited("ZQ==", "ZQ==, dGhlIHNhbXBsZSBub25jZQ=="),
        "400 Bad Request",
        "a Sec-WebSocket-Key of 50 characters is not the base64 of 16 bytes",
    );
    refuses(
        with_line("Content-Length: 0, 0"),
        "400 Bad Request",
        "the Content-Length header is invalid",
    );
}

#[test]
fn h03_tokens_and_names_are_found_in_any_case_and_line() {
    for (from, to) in [
        ("Connection: Upgrade", "Connection: keep-alive, uPgRaDe"),
        ("Connection: Upgrade", "Connection:\t \tUpgrade \t"),
        ("Connection: Upgrade", "Connection:Upgrade"),
        ("Connection: Upgrade", "Connection: , ,Upgrade,,"),
        (
            "Connection: Upgrade",
            "Connection: keep-alive\r\ncOnNeCtIoN: upgrade",
        ),
        ("Upgrade: websocket", "uPGRADE: WebSocket"),
        ("Upgrade: websocket", "Upgrade: h2c, websocket"),
        ("Upgrade: websocket", "Upgrade: h2c\r\nUpgrade: WEBSOCKET"),
        ("Sec-WebSocket-Key:", "sec-websocket-KEY:"),
        ("Sec-WebSocket-Version: 13", "SEC-WEBSOCKET-VERSION:\t13 "),
        ("Host:", "host:"),
    ] {
        accepts(edited(from, to));
    }
}

#[test]
fn h04_keys_that_are_not_sixteen_bytes_of_base64_are_refused() {
    for (key, characters) in [
        ("", 0),
        ("dGhlIHNhbXBsZSBub25jZQ", 22),
        ("dGhlIHNhbXBsZSBub25jZQ=", 23),
        ("dGhlIHNhbXBsZSBub25jZR==", 24),
        ("dGhlIHNhbXBsZSBub25jZXM=", 24),
        ("dGhlIHNhbXBsZSBub25jZXMh", 24),
        ("dGhl IHNhbXBsZSBub25jZQ=", 24),
        ("dGhlIHNhbXBs_SBub25jZQ==", 24),
        ("dGhlIHNhbXBsZSBub25jZQ===", 25),
        ("AAAA", 4),
    ] {
        refuses(
            edited("dGhlIHNhbXBsZSBub25jZQ==", key),
            "400 Bad Request",
            &format!(
                "a Sec-WebSocket-Key of {characters} characters is not the base64 of 16 bytes"
            ),
        );
    }
}

#[test]
fn h05_other_versions_are_told_which_one_we_speak() {
    for version in [
        "0", "7", "8", "12", "14", "13, 8", "8, 13", "013", "13.0", "+13", "1 3", "",
    ] {
        refuses(
            edited("Version: 13", &format!("Version: {version}")),
            "426 Upgrade Required",
            "the Sec-WebSocket-Version header must be 13",
        );
    }
}

#[test]
fn h16_other_methods_are_refused() {
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "get", "GETT", "QUERY",
    ] {
        refuses(
            edited("GET", method),
            "405 Method Not Allowed",
            "the WebSocket handshake requires the method GET",
        );
    }
}

#[test]
fn h16_the_answer_to_head_has_no_body() {
    let wire = "HTTP/1.1 405 Method Not Allowed\r\nConnection: close\r\nAllow: GET\r\n\
        Content-Type: text/plain; charset=utf-8\r\nContent-Length: 48\r\n\r\n";
    assert_eq!(
        outcome(edited("GET", "HEAD").as_bytes()),
        Outcome::Refused { wire: wire.into() }
    );
}

#[test]
fn plain_requests_are_distinguished_from_malformed_upgrades() {
    assert!(!request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").asks_for_websocket());
    assert!(!request(edited("websocket", "h2c")).asks_for_websocket());
    assert!(request(edited("Version: 13", "Version: 8")).asks_for_websocket());
}

#[test]
fn parts_from_another_parser_are_judged_the_same() {
    let headers = [
        ("host", &b"example.com"[..]),
        ("upgrade", b"websocket"),
        ("connection", b"upgrade"),
        ("sec-websocket-key", b"dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-version", b"13"),
    ];
    let build = |method: &str, target: &str, version, extra: &[(&'static str, &'static [u8])]| {
        let headers = headers.iter().chain(extra).copied();
        Request::from_parts(method, target, version, headers, HandshakeLimits::default())
    };
    let request = build("GET", "/a?b", HttpVersion::Http11, &[]).unwrap();
    assert_eq!((request.path(), request.query()), ("/a", Some("b")));
    assert_eq!(judge(&request).unwrap(), ACCEPTED);

    let request = build("GET", "/", HttpVersion::Http10, &[]).unwrap();
    assert_eq!(
        request.websocket().unwrap_err(),
        HandshakeError::HttpVersionUnsupported
    );

    let split = HandshakeError::HeaderValueInvalid;
    assert_eq!(
        build("GET", "/", HttpVersion::Http11, &[("a", b"b\r\nc: d")]).unwrap_err(),
        split
    );
    assert_eq!(
        build("GET", "/", HttpVersion::Http11, &[("a", b"\x00")]).unwrap_err(),
        split
    );
    assert_eq!(
        build("GET", "/", HttpVersion::Http11, &[("a b", b"")]).unwrap_err(),
        HandshakeError::HeaderNameInvalid
    );
    assert_eq!(
        build("GET", "/ HTTP/1.1\r\na: b", HttpVersion::Http11, &[]).unwrap_err(),
        HandshakeError::TargetInvalid
    );
    assert_eq!(
        build("GET / HTTP/1.1\r\n", "/", HttpVersion::Http11, &[]).unwrap_err(),
        HandshakeError::StartLineInvalid
    );
    assert_eq!(
        build("GET", "/", HttpVersion::Http11, &[("host", b"b")]).unwrap_err(),
        HandshakeError::HeaderDuplicate { name: "Host" }
    );
}

#[test]
fn a_request_exposes_its_host_and_its_origin() {
    let with_origin = request(with_line("Origin: https://example.com"));
    assert_eq!(with_origin.host(), Some("example.com"));
    assert_eq!(with_origin.origin(), Some(&b"https://example.com"[..]));
    assert_eq!(with_origin.header("upgrade"), Some(&b"websocket"[..]));
    assert_eq!(request(VALID).origin(), None);
}

#[test]
fn everything_can_be_sent_to_another_thread() {
    fn check<T: Send + Sync + Clone + core::fmt::Debug>() {}
    check::<Acceptance<'_>>();
    check::<ClientHandshake>();
    check::<HandshakeError>();
    check::<Negotiated>();
    check::<OriginPolicy>();
    check::<Refusal>();
    check::<Request>();
    check::<RequestReader>();
    check::<Upgrade<'_>>();
}

#[test]
fn debug_output_shows_no_credentials() {
    let client = ClientHandshake::new("example.com", "/?token=s3cret", [0; 16])
        .and_then(|client| client.with_header("Authorization", "s3cret"))
        .unwrap();
    let refusal = Refusal::new(401, "").and_then(|refusal| refusal.with_header("X", "s3cret"));
    let mut reader = RequestReader::new(HandshakeLimits::default());
    assert!(
        reader
            .handle_input(b"GET /?token=s3cret")
            .unwrap()
            .is_none()
    );
    let shown = format!("{client:?} {:?} {reader:?}", refusal.unwrap());
    assert_eq!(
        shown,
        "ClientHandshake { host: \"example.com\", subprotocols: [], failed: None, .. } \
         Refusal { status: 401, body: \"\\n\", .. } \
         RequestReader { head_bytes: 18, failed: None, .. }"
    );

    let request = request(edited(
        "/chat HTTP/1.1\r\n",
        "/chat?token=s3cret HTTP/1.1\r\nCookie: s3cret\r\n",
    ));
    let shown = format!("{request:?}");
    assert!(
        shown.contains("/chat") && shown.contains("Cookie"),
        "{shown}"
    );
    assert!(!shown.contains("s3cret"), "{shown}");
}
