//! Clients that violate HTTP/3, and how servers respond.

use std::time::Duration;

use linerate::{Options, Server};
use linerate_testkit::Frame as WebSocketFrame;
use quinn::TransportConfig;

use super::{Running, echo_http3, wire::*};
use crate::raw::in_time;

const NO_ERROR: u64 = 0x100;
const STREAM_CREATION_ERROR: u64 = 0x103;
const CLOSED_CRITICAL_STREAM: u64 = 0x104;
const FRAME_UNEXPECTED: u64 = 0x105;
const FRAME_ERROR: u64 = 0x106;
const EXCESSIVE_LOAD: u64 = 0x107;
const ID_ERROR: u64 = 0x108;
const SETTINGS_ERROR: u64 = 0x109;
const MISSING_SETTINGS: u64 = 0x10a;
const REQUEST_CANCELLED: u64 = 0x10c;
const REQUEST_INCOMPLETE: u64 = 0x10d;
const MESSAGE_ERROR: u64 = 0x10e;
const DECOMPRESSION_FAILED: u64 = 0x200;
const ENCODER_STREAM_ERROR: u64 = 0x201;
const DECODER_STREAM_ERROR: u64 = 0x202;

#[tokio::test]
async fn the_server_says_that_it_has_websockets() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut control = in_time(wire.connection.accept_uni()).await.unwrap();
    // The type of the stream, followed by the settings for the size of fields and for extended
    // CONNECT.
    let mut said = [0; 10];
    in_time(control.read_exact(&mut said)).await.unwrap();
    assert_eq!(&said, b"\x00\x04\x07\x06\x80\x00\x80\x00\x08\x01");
    server.abort();
}

#[tokio::test]
async fn a_websocket_comes_in_whatever_frames_and_pieces() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut stream = wire.connect().await;
    stream.echo("Spam").await;
    // Each DATA frame holds one byte, with empty frames and frames of unknown types in between.
    for byte in masked(WebSocketFrame::new(0x1, b"eggs")) {
        stream.data(b"").await;
        stream.data(&[byte]).await;
        in_time(stream.send.write_all(&frame(0x21, b"grease")))
            .await
            .unwrap();
    }
    assert_eq!(stream.message().await, (0x81, b"eggs".to_vec()));
    // The length is encoded in eight bytes where one would suffice.
    let message = masked(WebSocketFrame::new(0x1, b"ham"));
    let mut long = b"\x40\x00\xc0\0\0\0\0\0\0".to_vec();
    long.push(message.len() as u8);
    long.extend(message);
    for byte in long {
        in_time(stream.send.write_all(&[byte])).await.unwrap();
    }
    assert_eq!(stream.message().await, (0x81, b"ham".to_vec()));
    server.abort();
}

#[tokio::test]
async fn the_ends_of_a_websocket_are_those_of_its_stream() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut stream = wire.connect().await;
    stream
        .data(&masked(WebSocketFrame::new(0x8, &1_000_u16.to_be_bytes())))
        .await;
    assert_eq!(
        stream.message().await,
        (0x88, 1_000_u16.to_be_bytes().to_vec())
    );
    assert_eq!(
        stream.next().await,
        None,
        "the stream must end with a FIN, not a reset"
    );
    // The connection still serves other streams.
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s08_a_connect_to_anything_else_is_refused() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    for (fields, status) in [
        (connect_with(":protocol", Some("connect-udp")), 501),
        (connect_with("sec-websocket-version", Some("8")), 426),
        (connect_with("sec-websocket-version", None), 426),
        (connect_with(":path", Some("chat")), 400),
        (
            vec![(":method", "CONNECT"), (":authority", "localhost")],
            400,
        ),
        (
            vec![
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "localhost"),
                (":path", "/"),
            ],
            400,
        ),
    ] {
        let (refused, text) = wire.request(&fields).await.refusal().await;
        assert_eq!(refused, status, "{fields:?}: {text}");
    }
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s08_malformed_requests_cost_their_stream_only() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut forbidden = CONNECT.to_vec();
    forbidden.push(("upgrade", "websocket"));
    let mut behind = connect_with(":path", None);
    behind.push((":path", "/"));
    let mut twice = CONNECT.to_vec();
    twice.insert(0, (":path", "/"));
    let mut injected = CONNECT.to_vec();
    injected.push(("a", "b\r\nc: d"));
    for fields in [
        connect_with(":scheme", None),
        connect_with(":path", None),
        connect_with(":authority", None),
        connect_with(":method", Some("GET")),
        forbidden,
        behind,
        twice,
        injected,
        vec![],
    ] {
        let code = wire.request(&fields).await.reset().await;
        assert_eq!(code, MESSAGE_ERROR, "{fields:?}");
    }
    let mut empty = wire.send(b"").await;
    empty.send.finish().unwrap();
    assert_eq!(empty.reset().await, REQUEST_INCOMPLETE);
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s11_fields_beyond_the_limit_are_refused_and_those_at_it_are_not() {
    let mut options = Options::default();
    options.http3.header_list_bytes_max = 1_000;
    let server = Running::start(Server::new().with_options(options), echo_http3);
    let wire = Wire::open(&server).await;
    let size: usize = CONNECT
        .iter()
        .map(|(name, value)| name.len() + value.len() + 32)
        .sum();
    for (left, status) in [(0, 200), (1, 431)] {
        let value = "v".repeat(1_000 - size - 32 - 4 + left);
        let mut fields = CONNECT.to_vec();
        fields.push(("name", &value));
        let mut stream = wire.request(&fields).await;
        let (_, section) = stream.next().await.unwrap();
        assert_eq!(super::wire::status(&section), status);
    }
    // The server does not wait for a frame that claims to be long.
    let mut claimed = wire.send(b"\x01\xff\xff\xff\xff\xff\xff\xff\xff").await;
    assert_eq!(claimed.refusal().await.0, 431);
    server.abort();
}

#[tokio::test]
async fn frames_where_they_must_not_be_end_the_connection() {
    let server = Running::echo();
    for (bytes, code) in [
        (frame(DATA, b"x"), FRAME_UNEXPECTED),
        (frame(0x4, b""), FRAME_UNEXPECTED),
        (frame(0x5, b""), FRAME_UNEXPECTED),
        (frame(0x6, b"12345678"), FRAME_UNEXPECTED),
        (frame(0xd, b"\x00"), FRAME_UNEXPECTED),
        (frame(HEADERS, b""), DECOMPRESSION_FAILED),
        (frame(HEADERS, b"\x01\x00"), DECOMPRESSION_FAILED),
        (frame(HEADERS, b"\x00\x00\x80"), DECOMPRESSION_FAILED),
        (frame(HEADERS, b"\x00\x00\xff\x24"), DECOMPRESSION_FAILED),
        (frame(HEADERS, b"\x00\x00\x10"), DECOMPRESSION_FAILED),
        (frame(HEADERS, b"\x00\x00\x27\x7f"), DECOMPRESSION_FAILED),
        (frame(0x21, &[0; 10_000]).repeat(4), EXCESSIVE_LOAD),
    ] {
        let wire = Wire::open(&server).await;
        let _stream = wire.send(&bytes).await;
        assert_eq!(
            wire.closed().await,
            code,
            "{:?}",
            &bytes[..bytes.len().min(9)]
        );
    }
    server.abort();
}

#[tokio::test]
async fn s09_frames_that_end_with_their_stream_end_the_connection() {
    let server = Running::echo();
    for bytes in [&b"\x01"[..], b"\x01\x05", b"\x01\x05abc", b"\x21\x05abc"] {
        let wire = Wire::open(&server).await;
        let mut stream = wire.send(bytes).await;
        stream.send.finish().unwrap();
        assert_eq!(wire.closed().await, FRAME_ERROR, "{bytes:?}");
    }
    for bytes in [&b"\x00"[..], b"\x00\x05", b"\x00\x05abc", b"\x21\x05abc"] {
        let wire = Wire::open(&server).await;
        let mut stream = wire.connect().await;
        stream.send.write_all(bytes).await.unwrap();
        stream.send.finish().unwrap();
        assert_eq!(wire.closed().await, FRAME_ERROR, "{bytes:?}");
    }
    server.abort();
}

#[tokio::test]
async fn an_open_websocket_has_nothing_but_data() {
    let server = Running::echo();
    for kind in [HEADERS, 0x3, 0x4, 0x5, 0x7, 0x8, 0xd] {
        let wire = Wire::open(&server).await;
        let mut stream = wire.connect().await;
        stream.send.write_all(&frame(kind, b"")).await.unwrap();
        assert_eq!(wire.closed().await, FRAME_UNEXPECTED, "{kind}");
    }
    server.abort();
}

#[tokio::test]
async fn the_control_stream_has_rules() {
    let server = Running::echo();
    for (bytes, code) in [
        (&b"\x00\x07\x01\x00"[..], MISSING_SETTINGS),
        (b"\x00\x04\x02\x02\x00", SETTINGS_ERROR),
        (b"\x00\x04\x02\x08\x02", SETTINGS_ERROR),
        (b"\x00\x04\x00\x04\x00", FRAME_UNEXPECTED),
        (b"\x00\x04\x00\x00\x00", FRAME_UNEXPECTED),
        (b"\x00\x04\x00\x03\x01\x00", ID_ERROR),
        (b"\x00\x04\x60\x00", EXCESSIVE_LOAD),
        (b"\x01", STREAM_CREATION_ERROR),
        (b"\x02\x3f\xe1\x1f", ENCODER_STREAM_ERROR),
        (b"\x03\x80", DECODER_STREAM_ERROR),
    ] {
        let wire = Wire::open_with(&server, bytes, TransportConfig::default()).await;
        assert_eq!(wire.closed().await, code, "{bytes:?}");
    }
    let wire = Wire::open(&server).await;
    let _second = wire.send_uni(CONTROL).await;
    assert_eq!(wire.closed().await, STREAM_CREATION_ERROR);
    for kind in [0x0, 0x2, 0x3] {
        let wire = Wire::open_with(&server, b"\x21", TransportConfig::default()).await;
        let mut stream = wire.send_uni(&[kind]).await;
        stream.finish().unwrap();
        assert_eq!(wire.closed().await, CLOSED_CRITICAL_STREAM, "{kind}");
    }
    server.abort();
}

#[tokio::test]
async fn streams_that_nobody_knows_are_ignored() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    for _ in 0..20 {
        let stream = wire.send_uni(b"\x40\x21grease").await;
        let stopped = in_time(stream.stopped()).await.unwrap();
        assert_eq!(
            stopped.map(|code| code.into_inner()),
            Some(STREAM_CREATION_ERROR)
        );
    }
    let _encoder = wire.send_uni(b"\x02\x20").await;
    let _decoder = wire.send_uni(b"\x03\x40").await;
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s10_unmasked_frames_are_refused_as_over_http1() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut stream = wire.connect().await;
    stream.data(b"\x81\x04Spam").await;
    let (first, close) = stream.message().await;
    assert_eq!((first, &close[..2]), (0x88, &1_002_u16.to_be_bytes()[..]));
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s01_streams_given_up_too_often_end_the_connection() {
    let mut options = Options::default();
    options.http3.resets_max = 10;
    options.http3.resets_per_second = 0;
    let server = Running::start(Server::new().with_options(options), echo_http3);
    let wire = Wire::open(&server).await;
    for _ in 0..10 {
        let mut stream = wire.connect().await;
        stream.send.reset(code(REQUEST_CANCELLED as u32)).unwrap();
        assert_eq!(stream.reset().await, REQUEST_CANCELLED);
    }
    wire.connect().await.echo("Spam").await;
    let mut stream = wire.connect().await;
    stream.send.reset(code(REQUEST_CANCELLED as u32)).unwrap();
    assert_eq!(wire.closed().await, EXCESSIVE_LOAD);
    server.abort();
}

#[tokio::test]
async fn s02_streams_that_the_server_is_made_to_give_up_count_too() {
    let mut options = Options::default();
    options.http3.resets_max = 10;
    options.http3.resets_per_second = 0;
    let server = Running::start(Server::new().with_options(options), echo_http3);
    let wire = Wire::open(&server).await;
    let malformed = connect_with(":scheme", None);
    for _ in 0..10 {
        assert_eq!(wire.request(&malformed).await.reset().await, MESSAGE_ERROR);
    }
    let _last = wire.request(&malformed).await;
    assert_eq!(wire.closed().await, EXCESSIVE_LOAD);
    server.abort();
}

#[tokio::test]
async fn requests_that_take_too_long_are_given_up() {
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(200);
    let server = Running::start(Server::new().with_options(options), echo_http3);
    let wire = Wire::open(&server).await;
    let mut stream = wire.send(b"\x01\x20").await;
    assert_eq!(stream.reset().await, REQUEST_INCOMPLETE);
    wire.connect().await.echo("Spam").await;
    server.abort();
}

#[tokio::test]
async fn s05_answers_that_the_client_has_no_room_for_are_given_up() {
    let mut options = Options::default();
    options.handshake_timeout = Duration::from_millis(200);
    let server = Running::start(Server::new().with_options(options), echo_http3);
    let mut transport = TransportConfig::default();
    // There is room for the settings of the server and nothing else.
    transport.receive_window(code(10));
    let wire = Wire::open_with(&server, CONTROL, transport).await;
    let mut stream = wire.request(&CONNECT).await;
    assert_eq!(stream.reset().await, REQUEST_CANCELLED);
    server.abort();
}

#[tokio::test]
async fn connections_without_streams_end_after_a_time() {
    let mut options = Options::default();
    options.http3.idle_timeout = Duration::from_secs(1);
    let server = Running::start(Server::new().with_options(options), echo_http3);
    // The client keeps the connection alive, but opens no streams.
    let mut transport = TransportConfig::default();
    transport.keep_alive_interval(Some(Duration::from_millis(50)));
    let wire = Wire::open_with(&server, CONTROL, transport).await;
    assert_eq!(wire.closed().await, NO_ERROR);
    server.abort();
}

#[tokio::test]
async fn shutdown_says_goodbye_to_streams_and_connection() {
    let server = Running::echo();
    let wire = Wire::open(&server).await;
    let mut stream = wire.connect().await;
    stream.echo("Spam").await;
    let mut control = in_time(wire.connection.accept_uni()).await.unwrap();
    in_time(control.read_exact(&mut [0; 10])).await.unwrap();
    let stop = tokio::spawn(server.stop());
    let mut goodbye = [0; 3];
    in_time(control.read_exact(&mut goodbye)).await.unwrap();
    // No request from the second one on is processed.
    assert_eq!(&goodbye, b"\x07\x01\x04");
    let (first, close) = stream.message().await;
    assert_eq!((first, &close[..2]), (0x88, &1_001_u16.to_be_bytes()[..]));
    let mut late = wire.request(&CONNECT).await;
    assert_eq!(late.reset().await, 0x10b, "rejected");
    stream
        .data(&masked(WebSocketFrame::new(0x8, &close[..2])))
        .await;
    assert_eq!(wire.closed().await, NO_ERROR);
    in_time(stop).await.unwrap();
}
