//! Faults that end a connection. h2 finds most of them, and reports `PROTOCOL_ERROR` for some for
//! which the standard has a more exact error.

use linerate::Server;
use linerate_testkit::Frame as WebSocketFrame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{echo_http2, wire::*};
use crate::{raw::in_time, support::Running};

/// Returns a connection with a working WebSocket on stream 1.
async fn open(server: &Running) -> Wire {
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.echo(1, "before").await;
    wire
}

/// Sends `bytes` after opening a WebSocket, in one piece and byte by byte, and expects the
/// connection to end with the error `code`.
async fn ends_with(server: &Running, bytes: &[u8], code: u32) {
    for piece_bytes in [bytes.len(), 1] {
        let mut wire = open(server).await;
        for piece in bytes.chunks(piece_bytes) {
            wire.send_as_far(piece).await;
        }
        assert_eq!(wire.goaway().await, code, "{bytes:?}");
        while wire.next().await.is_some() {}
    }
    // Other connections are not affected.
    open(server).await;
}

#[tokio::test]
async fn s17_a_frame_of_the_wrong_size_ends_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    for (kind, flags, stream, bytes) in [
        (PING, 0, 0, 7),
        (PING, 0, 0, 9),
        (GOAWAY, 0, 0, 7),
        (SETTINGS, 0, 0, 5),
        (SETTINGS, ACK, 0, 6),
        (PRIORITY, 0, 1, 4),
        (RST_STREAM, 0, 1, 3),
        (WINDOW_UPDATE, 0, 0, 3),
        (WINDOW_UPDATE, 0, 1, 5),
    ] {
        let fault = frame(kind, flags, stream, &vec![0; bytes]);
        ends_with(&server, &fault, PROTOCOL_ERROR).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s20_a_window_that_can_not_be_ends_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    for fault in [
        &b"\0\x04\x80\0\0\0"[..],
        b"\0\x05\0\0\x40\0\0\x04\xff\xff\xff\xff",
    ] {
        let fault = frame(SETTINGS, 0, 0, fault);
        ends_with(&server, &fault, PROTOCOL_ERROR).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s04_frames_behind_the_end_of_a_stream_are_errors() {
    let server = Running::start(Server::new(), echo_http2).await;
    let message = masked(WebSocketFrame::new(0x1, b"Spam"));
    let end = frame(DATA, END_STREAM, 1, &message);
    // In one piece: what arrives after the WebSocket has ended finds a stream that was reset.
    let mut wire = open(&server).await;
    wire.send([&end[..], &frame(DATA, 0, 1, &message)].concat())
        .await;
    assert_eq!(wire.goaway().await, PROTOCOL_ERROR);
    let mut wire = open(&server).await;
    let fields = frame(HEADERS, END_HEADERS, 1, &block(&CONNECT));
    wire.send([&end[..], &fields].concat()).await;
    assert_eq!(wire.next_of(RST_STREAM, 1).await.code(), PROTOCOL_ERROR);
    drop(wire);
    server.stop().await;
}

#[tokio::test]
async fn s03_what_comes_into_a_field_block_ends_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    let block = block(&CONNECT);
    let begun = frame(HEADERS, 0, 3, &block[..9]);
    let ping = frame(PING, 0, 0, b"linerate");
    let rest = frame(CONTINUATION, END_HEADERS, 3, &block[9..]);
    ends_with(&server, &[&begun[..], &ping].concat(), PROTOCOL_ERROR).await;
    ends_with(&server, &rest, PROTOCOL_ERROR).await;
    let mut wire = open(&server).await;
    wire.send([begun, rest].concat()).await;
    assert_eq!(wire.next_of(HEADERS, 3).await.status(), "200");
    drop(wire);
    server.stop().await;
}

#[tokio::test]
async fn s25_fields_that_can_not_be_decoded_end_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    for rest in [
        &b"\x80"[..],
        b"\xbe",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x00\x01a\x05b",
        b"\x00\x81\x00\x01a",
        b"\x00\x84\xff\xff\xff\xff\x01a",
        b"\x20",
    ] {
        let fields = [&block(&CONNECT)[..], rest].concat();
        let request = frame(HEADERS, END_HEADERS, 3, &fields);
        ends_with(&server, &request, PROTOCOL_ERROR).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s11_nothing_sees_the_fragment_of_a_path() {
    let paths = |mut ws: linerate::WebSocket, request: linerate::Request| async move {
        ws.send(request.path().to_owned()).await
    };
    let server = Running::start(Server::new(), paths).await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.headers(1, &connect_with(":path", Some("/chat#a")))
        .await;
    assert_eq!(wire.next_of(HEADERS, 1).await.status(), "200");
    assert_eq!(wire.message(1).await, (0x81, b"/chat".to_vec()));
    drop(wire);
    server.stop().await;
}

#[tokio::test]
async fn s19_frames_before_settings_end_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    for first in [
        frame(HEADERS, END_HEADERS, 1, &block(&CONNECT)),
        frame(PING, 0, 0, b"linerate"),
        frame(SETTINGS, ACK, 0, b""),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let said = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &first].concat();
        stream.write_all(&said).await.unwrap();
        let mut came_back = Vec::new();
        in_time(stream.read_to_end(&mut came_back)).await.unwrap();
        let goaway = frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x01");
        assert!(came_back.ends_with(&goaway), "{came_back:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_fault_tears_no_frame_that_is_on_its_way() {
    let server = Running::start(Server::new(), echo_http2).await;
    let most = (1 << 31) - 1;
    let mut wire = Wire::open(server.address, &[(0x4, most)]).await;
    let room = (most - 65_535).to_be_bytes();
    wire.send(frame(WINDOW_UPDATE, 0, 0, &room)).await;
    wire.connect(1).await;
    // This is as much as the server accepts in advance. None of it is read here before the fault.
    let message = masked(WebSocketFrame::new(0x2, &[7; 12_000]));
    for _ in 0..20 {
        wire.data(1, &message).await;
    }
    wire.send(frame(PING, 0, 0, b"")).await;
    let mut last = None;
    while let Some(frame) = wire.next().await {
        assert!(frame.kind <= CONTINUATION, "{frame:?}");
        last = Some(frame);
    }
    let goaway = last.unwrap();
    assert_eq!((goaway.kind, goaway.code()), (GOAWAY, PROTOCOL_ERROR));
    server.stop().await;
}

#[tokio::test]
async fn what_comes_before_a_fault_is_served_to_the_last_byte() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = open(&server).await;
    let request = frame(HEADERS, END_HEADERS, 3, &block(&CONNECT));
    let fault = frame(PING, 0, 0, b"");
    wire.send([request, fault].concat()).await;
    let mut last = None;
    while let Some(frame) = wire.next().await {
        last = Some(frame);
    }
    let goaway = last.unwrap();
    assert_eq!((goaway.kind, goaway.code()), (GOAWAY, PROTOCOL_ERROR));
    assert_eq!(
        goaway.payload[..4],
        3_u32.to_be_bytes(),
        "the request was accepted"
    );
    server.stop().await;
}
