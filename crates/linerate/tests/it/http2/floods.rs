//! Endless floods of frames that cost the client less than the server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use linerate::{Options, Server};

use super::{echo_http2, wire::*};
use crate::support::Running;

/// Returns a server whose clients may reset only a few streams.
async fn strict(resets_max: u32) -> Running {
    let mut options = Options::default();
    options.http2.resets_max = resets_max;
    options.http2.resets_per_second = 0;
    Running::start(Server::new().with_options(options), echo_http2).await
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

#[tokio::test]
async fn s01_rapid_resets_end_the_connection() {
    const RESETS_MAX: u32 = 20;
    let server = strict(RESETS_MAX).await;
    let mut wire = Wire::open(server.address, &[]).await;
    for index in 0..RESETS_MAX {
        wire.connect(1 + 2 * index).await;
        wire.send(reset(1 + 2 * index)).await;
        wire.settle().await;
    }
    let next = 1 + 2 * RESETS_MAX;
    wire.connect(next).await;
    wire.echo(next, "as many as are allowed").await;
    wire.send(reset(next)).await;
    assert_eq!(wire.goaway().await, ENHANCE_YOUR_CALM);
    server.abort();
}

#[tokio::test]
async fn s01_rapid_resets_in_one_burst_end_the_connection() {
    let opened = Arc::<AtomicUsize>::default();
    let counter = opened.clone();
    let server = Running::start(Server::new(), move |ws, request| {
        counter.fetch_add(1, Ordering::Relaxed);
        echo_http2(ws, request)
    })
    .await;
    let mut wire = Wire::open(server.address, &[]).await;
    let mut burst = Vec::new();
    for index in 0..10_000 {
        let stream = 1 + 2 * index;
        burst.extend(frame(HEADERS, END_HEADERS, stream, &block(&CONNECT)));
        burst.extend(reset(stream));
    }
    wire.send_as_far(burst).await;
    assert_eq!(wire.goaway().await, ENHANCE_YOUR_CALM);
    let opened = opened.load(Ordering::Relaxed);
    assert!(opened <= 1_200, "{opened} handlers ran");
    server.abort();
}

#[tokio::test]
async fn s02_streams_that_the_server_is_made_to_reset_count() {
    const RESETS_MAX: u32 = 20;
    let server = strict(RESETS_MAX).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let mut reset = 0;
    let code = 'ended: loop {
        let stream = 1 + 2 * reset;
        wire.headers(stream, &CONNECT).await;
        // RFC 9113 §6.9.1: a window beyond 2^31 - 1 is an error of the stream.
        let increment = (u32::MAX >> 1).to_be_bytes();
        wire.send_as_far(frame(WINDOW_UPDATE, 0, stream, &increment))
            .await;
        loop {
            let frame = wire.next().await.expect("the server responds");
            match frame.kind {
                GOAWAY => break 'ended frame.code(),
                RST_STREAM if frame.stream == stream => break,
                _ => {}
            }
        }
        reset += 1;
        // Some more are in flight before the first reset above the limit is counted.
        assert!(reset <= RESETS_MAX + 10, "{reset} streams");
    };
    assert_eq!(code, ENHANCE_YOUR_CALM);
    server.abort();
}

#[tokio::test]
async fn s03_headers_that_never_end_end_the_connection() {
    for payload in [&b""[..], b"\x00\x01a\x01b"] {
        let server = Running::start(Server::new(), echo_http2).await;
        let mut wire = Wire::open(server.address, &[]).await;
        wire.send(frame(HEADERS, 0, 1, &block(&CONNECT))).await;
        let flood = frame(CONTINUATION, 0, 1, payload).repeat(100_000);
        wire.send_as_far(flood).await;
        let code = wire.goaway().await;
        assert_eq!(code, ENHANCE_YOUR_CALM, "{} bytes each", payload.len());
        server.abort();
    }
}

#[tokio::test]
async fn s04_empty_data_without_end_ends_the_connection() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    wire.send_as_far(frame(DATA, 0, 1, b"").repeat(100_000))
        .await;
    assert_eq!(wire.goaway().await, ENHANCE_YOUR_CALM);
    server.abort();
}

#[tokio::test]
async fn s05_nothing_piles_up_behind_answers_that_nobody_reads() {
    for (kind, payload) in [(PING, &[0; 8][..]), (SETTINGS, b"")] {
        let server = Running::start(Server::new(), echo_http2).await;
        let mut wire = Wire::open(server.address, &[]).await;
        // If the server stops reading, the kernel and the server accept less than this.
        let frames = (256 << 20) / (9 + payload.len());
        let flood = frame(kind, 0, 0, payload).repeat(1 << 12);
        let mut written = 0;
        let stalled = async {
            while written < frames * (9 + payload.len()) {
                tokio::io::AsyncWriteExt::write_all(&mut wire.stream, &flood)
                    .await
                    .unwrap();
                written += flood.len();
            }
        };
        let stalled = tokio::time::timeout(std::time::Duration::from_secs(3), stalled).await;
        assert!(
            stalled.is_err(),
            "{written} bytes of kind {kind} were accepted"
        );
        server.abort();
    }
}

#[tokio::test]
async fn s05_frames_that_change_nothing_leave_others_alone() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut other = Wire::open(server.address, &[]).await;
    other.connect(1).await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    const PRIORITY: u8 = 0x2;
    let priority = frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7]);
    let update = frame(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes());
    for flood in [priority, update] {
        wire.send(flood.repeat(50_000)).await;
        other.echo(1, "Spam").await;
    }
    wire.echo(1, "Spam").await;
    server.abort();
}
