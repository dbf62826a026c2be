//! Servers with invalid responses (RFC 6455 §4.1): C01 to C03, and H08 from the client's side.

use super::*;

/// The response to [`client`], without the empty line at its end.
const OPENED: &str = "HTTP/1.1 101 Switching Protocols\r\n\
    Upgrade: websocket\r\n\
    Connection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";

fn client() -> ClientHandshake {
    ClientHandshake::new("example.com", "/chat", *b"the sample nonce")
        .and_then(|client| client.with_subprotocol("chat")?.with_subprotocol("soap"))
        .unwrap()
}

/// The result of feeding a server's bytes to a client: the subprotocol and the first frames.
type Opened = Result<Option<(Option<String>, Vec<u8>)>, HandshakeError>;

fn open<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, mut client: ClientHandshake) -> Opened {
    let mut pieces = pieces.into_iter();
    while let Some(piece) = pieces.next() {
        let found = client.handle_input(piece);
        if let Err(error) = found {
            assert_eq!(client.handle_input(OPENED.as_bytes()).unwrap_err(), error);
            assert_eq!(client.handle_eof(), error);
        }
        if let Some((negotiated, head_bytes)) = found? {
            let mut rest = piece[head_bytes..].to_vec();
            pieces.for_each(|piece| rest.extend_from_slice(piece));
            return Ok(Some((negotiated.subprotocol().map(Into::into), rest)));
        }
    }
    Ok(None)
}

/// Feeds `input` whole, byte by byte and split at every position (about a thousand if it is long),
/// which must all have the same outcome.
fn outcome(input: impl AsRef<[u8]>) -> Opened {
    let input = input.as_ref();
    let whole = open([input], client());
    assert_eq!(
        open(input.chunks(1), client()),
        whole,
        "{}",
        input.escape_ascii()
    );
    for at in (0..input.len()).step_by(input.len() / 1_000 + 1) {
        let (head, tail) = input.split_at(at);
        assert_eq!(
            open([head, tail], client()),
            whole,
            "at {at}: {}",
            input.escape_ascii()
        );
    }
    whole
}

fn opened_with(line: &str) -> String {
    format!("{OPENED}{line}\r\n\r\n")
}

fn edited(from: &str, to: &str) -> String {
    assert!(OPENED.contains(from), "{from:?} is not in the response");
    format!("{}\r\n", OPENED.replacen(from, to, 1))
}

#[test]
fn the_request_is_as_the_rfc_requires() {
    let client = client()
        .with_origin("https://example.com".parse().unwrap())
        .with_header("Cookie", "id=7")
        .unwrap();
    let mut wire = b"before ".to_vec();
    client.encode(&mut wire);
    let expected = "before GET /chat HTTP/1.1\r\n\
        Host: example.com\r\n\
        Upgrade: websocket\r\n\
        Connection: Upgrade\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        Sec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Protocol: chat, soap\r\n\
        Origin: https://example.com\r\n\
        Cookie: id=7\r\n\
        \r\n";
    assert_eq!(text(wire), expected);
}

#[test]
fn our_client_and_our_server_understand_each_other() {
    let mut client = client();
    let mut wire = Vec::new();
    client.encode(&mut wire);
    let Outcome::Accepted { wire, rest } = super::outcome(&wire) else {
        panic!("the server refuses our client");
    };
    assert_eq!(rest, b"");
    let (negotiated, head_bytes) = client.handle_input(wire.as_bytes()).unwrap().unwrap();
    assert_eq!(
        (negotiated.subprotocol(), head_bytes),
        (Some("chat"), wire.len())
    );
    assert_eq!(
        negotiated.headers().first("upgrade"),
        Some(&b"websocket"[..])
    );
}

#[test]
fn h08_frames_in_the_segment_of_the_response_are_kept() {
    let input = [opened_with("X: a").as_bytes(), b"\x81\x04Spam\x89\x00"].concat();
    assert_eq!(
        outcome(input),
        Ok(Some((None, b"\x81\x04Spam\x89\x00".to_vec())))
    );
}

#[test]
fn c01_redirects_are_not_followed() {
    for status in [300, 301, 302, 303, 307, 308] {
        let input = format!("HTTP/1.1 {status} Moved\r\nLocation: ws://evil.example/\r\n\r\n");
        let error = HandshakeError::StatusUnexpected { status };
        assert_eq!(outcome(input), Err(error));
        let message = format!("the server answered with status {status} instead of 101");
        assert_eq!(format!("{error}"), message);
        assert_eq!(error.status(), 502);
    }
}

#[test]
fn c01_the_target_of_a_redirect_is_left_to_the_caller() {
    let mut handshake = client();
    assert!(handshake.refusal_headers().is_none());
    let input = b"HTTP/1.1 302 Found\r\nLocation: /there\r\n\r\n";
    assert!(handshake.handle_input(input).is_err());
    let headers = handshake.refusal_headers().unwrap();
    assert_eq!(headers.first_text("Location"), Some("/there"));
}

#[test]
fn c02_endless_headers_are_cut_off() {
    let (head_bytes, head_bytes_max) = (16 * 1024 + 1, 16 * 1024);
    assert_eq!(
        outcome(opened_with(&format!("X: {}", "a".repeat(1 << 17)))),
        Err(HandshakeError::HeadTooLarge {
            head_bytes,
            head_bytes_max
        })
    );
    assert_eq!(
        outcome(opened_with(&"a:b\r\n".repeat(10_000))),
        Err(HandshakeError::HeadersTooMany {
            headers: 101,
            headers_max: 100
        })
    );
    let limits = HandshakeLimits {
        headers_max: 3,
        ..HandshakeLimits::default()
    };
    let client = || client().with_limits(limits);
    assert!(
        open([edited("", "").as_bytes()], client())
            .unwrap()
            .is_some()
    );
    assert_eq!(
        open([opened_with("a: b").as_bytes()], client()),
        Err(HandshakeError::HeadersTooMany {
            headers: 4,
            headers_max: 3
        })
    );
}

#[test]
fn c02_interim_responses_are_skipped_up_to_their_limit() {
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 \r\n\r\n";
    let input = [interim, interim, OPENED, "\r\n\x01"].concat();
    assert_eq!(outcome(input), Ok(Some((None, b"\x01".to_vec()))));
    let input = interim.repeat(1_000);
    let error = HandshakeError::InterimResponsesTooMany {
        responses: 5,
        responses_max: 4,
    };
    assert_eq!(outcome(input), Err(error));
    assert_eq!(error.status(), 502);
}

#[test]
fn c02_junk_after_the_101_is_left_to_the_frame_codec() {
    let junk = [0xFF; 4_096];
    let input = [opened_with("X: a").as_bytes(), &junk].concat();
    assert_eq!(outcome(input), Ok(Some((None, junk.to_vec()))));
}

#[test]
fn c03_only_a_101_opens() {
    for status in [200, 204, 400, 401, 403, 404, 426, 500, 503] {
        let input = edited("101", &format!("{status}"));
        assert_eq!(
            outcome(input),
            Err(HandshakeError::StatusUnexpected { status })
        );
    }
    assert_eq!(
        outcome("HTTP/1.0 200 OK\r\n\r\n"),
        Err(HandshakeError::StatusUnexpected { status: 200 })
    );
    assert_eq!(
        outcome(edited("HTTP/1.1", "HTTP/1.0")),
        Err(HandshakeError::HttpVersionUnsupported)
    );
}

#[test]
fn c03_the_101_must_name_the_upgrade_and_answer_our_key() {
    for (from, to, error) in [
        (
            "Upgrade: websocket\r\n",
            "",
            HandshakeError::UpgradeNotWebSocket,
        ),
        ("websocket", "h2c", HandshakeError::UpgradeNotWebSocket),
        (
            "Connection: Upgrade\r\n",
            "",
            HandshakeError::ConnectionNotUpgrade,
        ),
        (
            "Connection: Upgrade",
            "Connection: close",
            HandshakeError::ConnectionNotUpgrade,
        ),
        ("s3pP", "S3pP", HandshakeError::AcceptMismatch),
        ("xOo=", "xOo", HandshakeError::AcceptMismatch),
        (
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            "",
            HandshakeError::AcceptMismatch,
        ),
        (
            "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
            "\u{FF}",
            HandshakeError::AcceptMismatch,
        ),
        (
            "Sec-WebSocket-Accept:",
            "X-Accept:",
            HandshakeError::HeaderMissing {
                name: "Sec-WebSocket-Accept",
            },
        ),
        (
            "Upgrade:",
            "Sec-WebSocket-Accept: a\r\nUpgrade:",
            HandshakeError::HeaderDuplicate {
                name: "Sec-WebSocket-Accept",
            },
        ),
    ] {
        assert_eq!(outcome(edited(from, to)), Err(error), "{from:?} {to:?}");
    }
    assert_eq!(HandshakeError::AcceptMismatch.status(), 502);
    let lenient = edited("Connection: Upgrade", "connection: keep-alive, upgrade").replacen(
        "Upgrade: websocket",
        "UPGRADE: WebSocket",
        1,
    );
    assert_eq!(outcome(lenient), Ok(Some((None, Vec::new()))));
}

#[test]
fn c03_only_offered_options_may_be_chosen() {
    let chosen = outcome(opened_with("Sec-WebSocket-Protocol: soap"));
    assert_eq!(chosen, Ok(Some((Some("soap".into()), Vec::new()))));
    for line in [
        "Sec-WebSocket-Protocol: wamp",
        "Sec-WebSocket-Protocol: Chat",
        "Sec-WebSocket-Protocol: chat, soap",
        "Sec-WebSocket-Protocol:",
    ] {
        let error = HandshakeError::SubprotocolUnoffered;
        assert_eq!(outcome(opened_with(line)), Err(error), "{line}");
        assert_eq!(error.status(), 502);
    }
    assert_eq!(
        outcome(opened_with(
            "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: soap"
        )),
        Err(HandshakeError::HeaderDuplicate {
            name: "Sec-WebSocket-Protocol"
        })
    );
    for line in [
        "Sec-WebSocket-Extensions: permessage-deflate",
        "sec-websocket-extensions: \"",
    ] {
        let error = HandshakeError::ExtensionUnoffered;
        assert_eq!(outcome(opened_with(line)), Err(error));
        assert_eq!(error.status(), 502);
    }
}

#[test]
fn c03_anything_but_a_response_is_refused_at_once() {
    for (input, error) in [
        ("\r\n", HandshakeError::HeadByteInvalid { offset: 0 }),
        (
            "\x16\x03\x01",
            HandshakeError::HeadByteInvalid { offset: 0 },
        ),
        (
            "SSH-2.0-x\r\n",
            HandshakeError::HeadByteInvalid { offset: 0 },
        ),
        (
            "HTTP/1.1 101\n",
            HandshakeError::HeadByteInvalid { offset: 12 },
        ),
        (
            "HTTP/1.1 101 \r\n a\r\n\r\n",
            HandshakeError::HeadByteInvalid { offset: 15 },
        ),
        (
            "HTTP/1.1 101 \r\na : b\r\n\r\n",
            HandshakeError::HeaderNameInvalid,
        ),
        ("HTTP/2 101 \r\n\r\n", HandshakeError::StartLineInvalid),
        ("HTTP/1.1 10 \r\n\r\n", HandshakeError::StartLineInvalid),
        ("HTTP/1.1 1010 \r\n\r\n", HandshakeError::StartLineInvalid),
        ("HELO\r\n\r\n", HandshakeError::StartLineInvalid),
    ] {
        assert_eq!(outcome(input), Err(error), "{input:?}");
    }
}

#[test]
fn a_connection_that_ends_early_is_an_error_with_the_stage() {
    let mut client = client();
    assert_eq!(
        client.handle_eof(),
        HandshakeError::HeadTruncated { head_bytes: 0 }
    );
    assert!(client.handle_input(OPENED.as_bytes()).unwrap().is_none());
    let head_bytes = OPENED.len();
    assert_eq!(
        client.handle_eof(),
        HandshakeError::HeadTruncated { head_bytes }
    );
}
