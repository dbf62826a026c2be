use std::io::{Read as _, Write as _};
use std::thread;

use linerate_proto::handshake::{HandshakeLimits, RequestReader};

use super::*;
use crate::load::testing::{IMPATIENT, serve_raw, serve_websocket, serve_websocket_with};

/// The default of `HandshakeLimits::head_bytes_max`.
const HEAD_BYTES_MAX: usize = 16 << 10;

fn open_impatiently(target: &Target, deflate: Deflate) -> Result<OpenConnection, LoadError> {
    open(target, deflate, IMPATIENT.silence_max)
}

/// Starts a server that answers each request with `response`.
fn respond(response: &'static [u8]) -> Target {
    let target = serve_raw(move |mut stream, _| {
        let mut request = [0; 2 << 10];
        let _ = stream.read(&mut request)?;
        stream.write_all(response)?;
        // Wait until the client has gone.
        stream.read(&mut request).map(drop)
    });
    Target {
        wire: Wire::WebSocket,
        ..target
    }
}

#[test]
fn what_follows_the_response_is_handed_on() {
    let target = serve_websocket_with("\r\n\x01\x02", |peer, _| peer.read().map(drop));
    let opened = open_impatiently(&target, Deflate::Off).unwrap();
    // The helper inserts its headers before the empty line, so the empty line is sent twice.
    assert_eq!(opened.leftover, b"\x01\x02\r\n");
}

#[test]
fn interim_responses_are_skipped() {
    let target = serve_raw(|mut stream, _| {
        let mut request = [0; 2 << 10];
        let bytes = stream.read(&mut request)?;
        let mut reader = RequestReader::new(HandshakeLimits::default());
        let (request, _) = reader.handle_input(&request[..bytes]).unwrap().unwrap();
        let mut response = b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec();
        request.websocket().unwrap().accept().encode(&mut response);
        response.extend(b"\x89\x00");
        // The first part is read alone, the second with the bytes after the response.
        let (first, rest) = response.split_at(40);
        stream.write_all(first)?;
        thread::sleep(Duration::from_millis(5));
        stream.write_all(rest)?;
        stream.read(&mut [0]).map(drop)
    });
    let target = Target {
        wire: Wire::WebSocket,
        ..target
    };
    let opened = open_impatiently(&target, Deflate::Off).unwrap();
    assert_eq!(opened.leftover, b"\x89\x00");
}

#[test]
fn other_answers_than_101_are_failures() {
    let target = respond(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let error = open_impatiently(&target, Deflate::Off).unwrap_err();
    let LoadError::Handshake(HandshakeError::StatusUnexpected { status: 404 }) = error else {
        panic!("{error}");
    };
    let target = respond(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    );
    let error = open_impatiently(&target, Deflate::Off).unwrap_err();
    assert!(
        matches!(error, LoadError::Handshake(HandshakeError::AcceptMismatch)),
        "{error}"
    );
}

#[test]
fn heads_have_a_limit() {
    static ENDLESS: [u8; HEAD_BYTES_MAX + 1] = [b'H'; HEAD_BYTES_MAX + 1];
    let error = open_impatiently(&respond(&ENDLESS), Deflate::Off).unwrap_err();
    let LoadError::Handshake(HandshakeError::HeadTooLarge { head_bytes_max, .. }) = error else {
        panic!("{error}");
    };
    assert_eq!(head_bytes_max, HEAD_BYTES_MAX);
    let error = open_impatiently(&respond(&ENDLESS[1..]), Deflate::Off).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
}

#[test]
fn silence_and_an_end_are_failures() {
    let error = open_impatiently(&respond(b"HTTP/1.1 101"), Deflate::Off).unwrap_err();
    assert!(matches!(error, LoadError::Silent { .. }), "{error}");
    let target = serve_raw(|mut stream, _| {
        let _ = stream.read(&mut [0; 2 << 10])?;
        stream.write_all(b"HTTP/1.1 1")
    });
    let target = Target {
        wire: Wire::WebSocket,
        ..target
    };
    let error = open_impatiently(&target, Deflate::Off).unwrap_err();
    let LoadError::Handshake(HandshakeError::HeadTruncated { head_bytes: 10 }) = error else {
        panic!("{error}");
    };
}

#[test]
fn compression_has_to_be_agreed_on_as_offered() {
    let check = |header: &'static str, deflate| {
        let target = serve_websocket_with(header, |peer, _| peer.read().map(drop));
        open_impatiently(&target, deflate).map(drop)
    };
    let forgets = "sec-websocket-extensions: permessage-deflate; server_no_context_takeover\r\n";
    let remembers = "Sec-WebSocket-Extensions: permessage-deflate ; server_max_window_bits=12\r\n";
    check(forgets, Deflate::NoTakeover).unwrap();
    check(remembers, Deflate::Takeover).unwrap();
    for (header, deflate) in [
        (forgets, Deflate::Takeover),
        (remembers, Deflate::NoTakeover),
        ("Sec-WebSocket-Extensions: x-other\r\n", Deflate::Takeover),
        (
            "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=9\r\n",
            Deflate::Takeover,
        ),
        (
            "Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Extensions: x\r\n",
            Deflate::Takeover,
        ),
    ] {
        let error = check(header, deflate).unwrap_err();
        assert!(
            matches!(error, LoadError::DeflateParameters),
            "{header}: {error}"
        );
    }
    for deflate in [Deflate::NoTakeover, Deflate::Takeover] {
        let error = check("", deflate).unwrap_err();
        assert!(matches!(error, LoadError::DeflateDeclined), "{error}");
    }
    // An extension that was not offered is not accepted.
    let error = check(remembers, Deflate::Off).unwrap_err();
    assert!(
        matches!(
            error,
            LoadError::Handshake(HandshakeError::ExtensionUnoffered)
        ),
        "{error}"
    );
}

#[test]
fn names_that_no_request_can_have_are_our_own_failure() {
    let target = Target {
        path: "no path".to_owned(),
        ..serve_websocket(|peer, _| peer.read().map(drop))
    };
    let error = open_impatiently(&target, Deflate::Off).unwrap_err();
    assert!(error.is_ours(), "{error}");
}
