//! Servers that violate HTTP/3 or lack a required feature, and the errors that clients report.

use linerate::{
    Error,
    dial::{DialError, Http3Error},
    handshake::HandshakeError,
};

use super::wire::*;
use crate::raw::in_time;

#[tokio::test]
async fn a_server_without_websockets_is_said_to_be_one() {
    for settings in [&b"\x00\x04\x00"[..], b"\x00\x04\x02\x08\x00"] {
        let server = WireServer::start();
        let connecting = in_time(server.trusting.connect(&server.url));
        let (connected, (connection, _control)) = tokio::join!(connecting, server.accept(settings));
        let error = connected.unwrap_err();
        assert!(
            matches!(
                error,
                Error::Dial(DialError::Http3(Http3Error::WebSocketsMissing))
            ),
            "{error}"
        );
        assert!(!error.is_transient());
        assert_eq!(closed(&connection).await, 0x100);
    }
}

/// Connects to a server that answers a request with exactly these bytes.
async fn answered(bytes: &[u8]) -> (Error, u64) {
    let server = WireServer::start();
    let connecting = in_time(server.trusting.connect(&server.url));
    let answering = async {
        let (connection, control, mut exchange) = server.accept_request().await;
        exchange.send.write_all(bytes).await.unwrap();
        exchange.send.finish().unwrap();
        (closed(&connection).await, control)
    };
    let (connected, (code, _control)) = tokio::join!(connecting, answering);
    (connected.unwrap_err(), code)
}

#[tokio::test]
async fn responses_that_open_nothing_are_errors() {
    let refused = frame(HEADERS, b"\0\0\xdc");
    let (error, code) = answered(&refused).await;
    let Error::StatusUnexpected(response) = error else {
        panic!("{error}");
    };
    assert_eq!((response.status, code), (503, 0x100));
    assert!(!response.is_truncated);

    // The body is longer than what is kept of it.
    let mut refused = refused;
    for _ in 0..5 {
        refused.extend(frame(DATA, &[b'x'; 1_000]));
    }
    let (error, code) = answered(&refused).await;
    let Error::StatusUnexpected(response) = error else {
        panic!("{error}");
    };
    assert_eq!((response.body, code), (vec![b'x'; 4 << 10], 0x100));
    assert!(response.is_truncated);

    let unasked = section(&[(":status", "200"), ("sec-websocket-protocol", "soap")]);
    let (error, _) = answered(&frame(HEADERS, &unasked)).await;
    assert!(
        matches!(
            error,
            Error::Handshake(HandshakeError::SubprotocolUnoffered)
        ),
        "{error}"
    );

    for malformed in [
        section(&[]),
        section(&[(":status", "abc")]),
        section(&[(":status", "200"), ("Accept", "x")]),
        section(&[(":status", "200"), ("a", "b\r\nc: d")]),
        section(&[("a", "b"), (":status", "200")]),
    ] {
        let (error, _) = answered(&frame(HEADERS, &malformed)).await;
        assert!(error.to_string().contains("malformed message"), "{error}");
    }
    let (error, _) = answered(b"").await;
    assert!(
        error.to_string().contains("stream ends without a response"),
        "{error}"
    );
}

#[tokio::test]
async fn servers_that_break_the_rules_are_told_which() {
    for (bytes, code) in [
        (frame(DATA, b"x"), 0x105),
        (b"\x01\x05".to_vec(), 0x106),
        (frame(HEADERS, b"\x02\x00"), 0x200),
    ] {
        let (error, told) = answered(&bytes).await;
        assert_eq!(told, code, "{error}");
        assert!(error.to_string().contains("HTTP/3"), "{error}");
    }
}

#[tokio::test]
async fn c02_responses_without_end_are_given_up() {
    let interim = frame(HEADERS, &section(&[(":status", "103")]));
    let (error, _) = answered(&interim.repeat(1_000)).await;
    assert!(
        matches!(
            error,
            Error::Handshake(HandshakeError::InterimResponsesTooMany { .. })
        ),
        "{error}"
    );
    let (error, _) = answered(b"\x01\xc0\0\0\0\0\0\xff\xff").await;
    assert!(
        matches!(error, Error::Handshake(HandshakeError::HeadTooLarge { .. })),
        "{error}"
    );
}

#[tokio::test]
async fn an_interim_response_is_not_the_answer() {
    let server = WireServer::start();
    let connecting = in_time(server.trusting.connect(&server.url));
    let answering = async {
        let (connection, control, mut exchange) = server.accept_request().await;
        let mut answer = frame(HEADERS, &section(&[(":status", "103"), ("link", "</x>")]));
        answer.extend(frame(HEADERS, b"\0\0\xd9"));
        answer.extend(frame(DATA, b"\x81\x04Spam"));
        exchange.send.write_all(&answer).await.unwrap();
        (connection, control, exchange)
    };
    let (connected, _server) = tokio::join!(connecting, answering);
    let mut ws = connected.unwrap();
    assert_eq!(in_time(ws.recv()).await.unwrap(), Some("Spam".into()));
}

#[tokio::test]
async fn s09_a_stream_that_the_server_resets_is_an_error() {
    let server = WireServer::start();
    let connecting = in_time(server.trusting.connect(&server.url));
    let answering = async {
        let (connection, control, mut exchange) = server.accept_request().await;
        exchange
            .send
            .write_all(&frame(HEADERS, b"\0\0\xd9"))
            .await
            .unwrap();
        (connection, control, exchange)
    };
    let (connected, (connection, _control, mut exchange)) = tokio::join!(connecting, answering);
    let mut ws = connected.unwrap();
    exchange.send.reset(code(0x10c)).unwrap();
    let error = in_time(ws.recv()).await.unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error}");
    drop(ws);
    assert_eq!(
        closed(&connection).await,
        0x100,
        "the connection must end with the stream"
    );
}

#[tokio::test]
async fn a_close_frame_and_the_end_of_the_stream_arrive_before_the_connection_ends() {
    let server = WireServer::start();
    let connecting = in_time(server.trusting.connect(&server.url));
    let answering = async {
        let (connection, control, mut exchange) = server.accept_request().await;
        exchange
            .send
            .write_all(&frame(HEADERS, b"\0\0\xd9"))
            .await
            .unwrap();
        (connection, control, exchange)
    };
    let (connected, (connection, _control, mut exchange)) = tokio::join!(connecting, answering);
    let mut ws = connected.unwrap();
    let close = tokio::spawn(async move {
        let closed = ws.close(linerate::CloseCode::NORMAL, "").await.unwrap();
        assert!(closed.clean);
    });
    let (first, payload) = exchange.message().await;
    // The client's frame is masked.
    assert_eq!((first, payload.len()), (0x88, 2));
    exchange.data(b"\x88\x02\x03\xe8").await;
    exchange.send.finish().unwrap();
    in_time(close).await.unwrap();
    assert_eq!(
        exchange.next().await,
        None,
        "the stream must end with a FIN, not a reset"
    );
    assert_eq!(closed(&connection).await, 0x100);
}
