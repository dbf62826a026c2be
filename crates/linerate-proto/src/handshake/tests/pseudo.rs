//! Requests and responses of HTTP/2 (RFC 8441).

use super::*;

const CONNECT: PseudoHeaders<'_> = PseudoHeaders {
    version: HttpVersion::Http2,
    method: "CONNECT",
    protocol: Some("websocket"),
    authority: Some("example.com"),
    path: "/chat?room=1",
};

const VERSION: (&str, &[u8]) = ("sec-websocket-version", b"13");

fn request(
    pseudo: PseudoHeaders<'_>,
    headers: &[(&str, &[u8])],
) -> Result<Request, HandshakeError> {
    let headers = headers.iter().copied();
    Request::from_pseudo(pseudo, headers, HandshakeLimits::default())
}

/// Checks a request to open a WebSocket.
fn judge(pseudo: PseudoHeaders<'_>, headers: &[(&str, &[u8])]) -> Result<(), HandshakeError> {
    request(pseudo, headers)?.websocket().map(|_| ())
}

#[test]
fn a_connect_is_a_request_as_any_other() {
    let request = request(CONNECT, &[VERSION, ("cookie", b"a=b")]).unwrap();
    assert!(request.asks_for_websocket());
    assert_eq!(request.method(), "CONNECT");
    assert_eq!(request.protocol(), Some("websocket"));
    assert_eq!((request.path(), request.query()), ("/chat", Some("room=1")));
    assert_eq!(request.host(), Some("example.com"));
    assert_eq!(request.version(), HttpVersion::Http2);
    assert_eq!(request.header("Cookie"), Some(&b"a=b"[..]));
}

#[test]
fn http3_is_like_http2_and_http1_has_no_pseudo_headers() {
    let over = |version| PseudoHeaders { version, ..CONNECT };
    let request = request(over(HttpVersion::Http3), &[VERSION]).unwrap();
    assert_eq!(request.version(), HttpVersion::Http3);
    assert!(request.asks_for_websocket());
    assert_eq!(request.websocket().unwrap().accept().status(), 200);
    let refused = judge(over(HttpVersion::Http11), &[VERSION]);
    assert_eq!(refused, Err(HandshakeError::HttpVersionUnsupported));
}

#[test]
fn the_answer_has_no_trace_of_an_upgrade() {
    let offer = ("sec-websocket-protocol", &b"soap, wamp"[..]);
    let request = request(CONNECT, &[VERSION, offer]).unwrap();
    let upgrade = request.websocket().unwrap();
    let acceptance = upgrade.accept().with_subprotocol("wamp").unwrap();
    assert_eq!(acceptance.status(), 200);
    let headers: Vec<_> = acceptance.headers().collect();
    assert_eq!(headers, [("Sec-WebSocket-Protocol", "wamp")]);
}

#[test]
fn s08_a_connect_to_anything_else_is_refused() {
    let with = |method, protocol| PseudoHeaders {
        method,
        protocol,
        ..CONNECT
    };
    let refused = [
        (with("GET", None), HandshakeError::MethodNotConnect),
        (with("CONNECT", None), HandshakeError::MethodNotConnect),
        (
            with("CONNECT", Some("connect-udp")),
            HandshakeError::ConnectProtocolUnsupported,
        ),
        (
            with("CONNECT", Some("WebSocket")),
            HandshakeError::ConnectProtocolUnsupported,
        ),
    ];
    for (pseudo, error) in refused {
        assert_eq!(judge(pseudo, &[VERSION]), Err(error), "{pseudo:?}");
    }
    let unsupported = Err(HandshakeError::WebSocketVersionUnsupported);
    assert_eq!(judge(CONNECT, &[]), unsupported);
    let old = ("sec-websocket-version", &b"8"[..]);
    assert_eq!(judge(CONNECT, &[old]), unsupported);
    let body = ("content-length", &b"1"[..]);
    let with_body = judge(CONNECT, &[VERSION, body]);
    assert_eq!(with_body, Err(HandshakeError::BodyUnexpected));
    assert_eq!(HandshakeError::ConnectProtocolUnsupported.status(), 501);
    assert_eq!(HandshakeError::MethodNotConnect.status(), 400);
}

#[test]
fn s11_host_and_authority_that_differ_are_refused() {
    let invalid = Err(HandshakeError::HostInvalid);
    for host in ["evil.example", "example.com:81", "", "a,b"] {
        let host = ("host", host.as_bytes());
        assert_eq!(judge(CONNECT, &[VERSION, host]), invalid, "{host:?}");
    }
    assert_eq!(judge(CONNECT, &[VERSION, ("host", b"EXAMPLE.com")]), Ok(()));
    let without = PseudoHeaders {
        authority: None,
        ..CONNECT
    };
    assert_eq!(judge(without, &[VERSION, ("host", b"example.com")]), Ok(()));
    let missing = Err(HandshakeError::HeaderMissing { name: "Host" });
    assert_eq!(judge(without, &[VERSION]), missing);
    let user = PseudoHeaders {
        authority: Some("user@example.com"),
        ..CONNECT
    };
    assert_eq!(judge(user, &[VERSION]), invalid);
}

#[test]
fn s11_no_field_can_add_a_line() {
    for value in [&b"a\r\nb: c"[..], b"a\0", b"a\nb"] {
        let refused = judge(CONNECT, &[VERSION, ("a", value)]);
        assert_eq!(refused, Err(HandshakeError::HeaderValueInvalid));
    }
    let refused = judge(CONNECT, &[VERSION, ("a b", b"")]);
    assert_eq!(refused, Err(HandshakeError::HeaderNameInvalid));
    for path in ["", "chat", "/ HTTP/1.1\r\na: b", "/#top", "*"] {
        let pseudo = PseudoHeaders { path, ..CONNECT };
        let refused = judge(pseudo, &[VERSION]);
        assert_eq!(refused, Err(HandshakeError::TargetInvalid), "{path:?}");
    }
}

#[test]
fn s11_fields_over_the_limit_are_refused() {
    let limits = HandshakeLimits::default();
    let value = std::vec![b'a'; limits.head_bytes_max];
    let error = judge(CONNECT, &[VERSION, ("a", &value)]).unwrap_err();
    assert_eq!(error.status(), 431, "{error}");
}

#[test]
fn a_client_sends_no_trace_of_an_upgrade() {
    let handshake = ClientHandshake::new("example.com", "/chat", [0; 16])
        .and_then(|handshake| handshake.with_subprotocol("wamp"))
        .and_then(|handshake| handshake.with_subprotocol("soap"))
        .and_then(|handshake| handshake.with_header("Cookie", "a=b"))
        .unwrap();
    let fields: Vec<_> = handshake
        .fields()
        .map(|(name, value)| format!("{name}: {value}"))
        .collect();
    let expected = [
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Protocol: wamp, soap",
        "Cookie: a=b",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn a_client_judges_the_response() {
    let mut handshake = ClientHandshake::new("example.com", "/chat", [0; 16])
        .and_then(|handshake| handshake.with_subprotocol("wamp"))
        .unwrap();
    let mut judge = |status, headers: &[(&str, &[u8])]| {
        let negotiated = handshake.handle_response(status, headers.iter().copied())?;
        Ok(negotiated.subprotocol().map(String::from))
    };
    let chosen = ("sec-websocket-protocol", &b"wamp"[..]);
    assert_eq!(judge(200, &[chosen]), Ok(Some("wamp".into())));
    assert_eq!(judge(204, &[]), Ok(None));
    let other = ("sec-websocket-protocol", &b"soap"[..]);
    let unoffered = Err(HandshakeError::SubprotocolUnoffered);
    assert_eq!(judge(200, &[other]), unoffered);
    for status in [101, 302, 404] {
        let unexpected = Err(HandshakeError::StatusUnexpected { status });
        let elsewhere = ("location", &b"/elsewhere"[..]);
        assert_eq!(judge(status, &[elsewhere]), unexpected);
    }
    let headers = handshake.refusal_headers().unwrap();
    assert_eq!(headers.first("Location"), Some(&b"/elsewhere"[..]));
}

#[test]
fn only_options_may_target_the_whole_server() {
    let of = |method, path| {
        let plain = PseudoHeaders {
            method,
            path,
            protocol: None,
            ..CONNECT
        };
        request(plain, &[]).map(|request| request.method().len())
    };
    assert_eq!(of("OPTIONS", "*"), Ok(7));
    for (method, path) in [
        ("GET", "*"),
        ("OPTIONS", "x"),
        ("GET", "x"),
        ("OPTIONS", "**"),
        ("OPTIONS", "/a b"),
        ("OPTIONS", "/\r\nx: y"),
    ] {
        assert_eq!(
            of(method, path),
            Err(HandshakeError::TargetInvalid),
            "{method} {path}"
        );
    }
}
