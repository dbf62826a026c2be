//! Frames that end a connection with an error that says exactly what is wrong.

use linerate::Server;
use linerate_testkit::Frame as WebSocketFrame;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{echo_http2, wire::*};
use crate::{raw::in_time, support::Running};

/// A connection with a WebSocket on stream 1 that works.
async fn open(server: &Running) -> Wire {
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.echo(1, "before").await;
    wire
}

/// Sends this behind a WebSocket, whole and byte by byte; expects the connection to end with the error.
async fn ends_with(server: &Running, bytes: &[u8], code: u32) {
    for piece_bytes in [bytes.len(), 1] {
        let mut wire = open(server).await;
        for piece in bytes.chunks(piece_bytes) {
            wire.send_as_far(piece).await;
        }
        assert_eq!(wire.goaway().await, code, "{bytes:?}");
        while wire.next().await.is_some() {}
    }
    // Others are not affected.
    open(server).await;
}

#[tokio::test]
async fn s17_a_frame_of_the_wrong_size_is_an_error_of_its_size() {
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
        ends_with(&server, &fault, FRAME_SIZE_ERROR).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s20_a_window_that_can_not_be_is_an_error_of_flow_control() {
    let server = Running::start(Server::new(), echo_http2).await;
    for fault in [
        &b"\0\x04\x80\0\0\0"[..],
        b"\0\x05\0\0\x40\0\0\x04\xff\xff\xff\xff",
    ] {
        let fault = frame(SETTINGS, 0, 0, fault);
        ends_with(&server, &fault, FLOW_CONTROL_ERROR).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn s04_data_behind_the_end_of_a_stream_finds_it_closed() {
    let server = Running::start(Server::new(), echo_http2).await;
    let message = masked(WebSocketFrame::new(0x1, b"Spam"));
    let end = frame(DATA, END_STREAM, 1, &message);
    for behind in [
        frame(DATA, 0, 1, &message),
        frame(HEADERS, END_HEADERS, 1, &block(&CONNECT)),
    ] {
        let fault = [&end[..], &behind].concat();
        ends_with(&server, &fault, STREAM_CLOSED).await;
    }
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
    assert_eq!((goaway.kind, goaway.code()), (GOAWAY, FRAME_SIZE_ERROR));
    assert_eq!(goaway.payload[..4], 3_u32.to_be_bytes(), "it was taken");
    server.stop().await;
}
