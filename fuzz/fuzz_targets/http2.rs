//! Any bytes on an HTTP/2 connection that supports WebSockets.
#![no_main]

use std::{sync::Arc, time::Duration};

use libfuzzer_sys::fuzz_target;
use linerate::{
    Http2Limits,
    axum::{WebSocketService, serve_http2},
};
use linerate_testkit::Cuts;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";

// The first byte chooses the pieces in which the bytes arrive, and whether the client preface is
// put before them. The connection ends in bounded time, and only whole frames of allowed size are
// written.
fuzz_target!(|data: &[u8]| {
    let Some((choice, data)) = data.split_first() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing but memory");
    let written = runtime.block_on(exchange(*choice, data));
    check_frames(&written);
});

async fn exchange(choice: u8, data: &[u8]) -> Vec<u8> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let service = WebSocketService::new(|mut ws, _| async move {
        while let Some(message) = ws.recv().await? {
            ws.send(message).await?;
        }
        Ok(())
    });
    let limits = Arc::new(Http2Limits::default());
    let served = tokio::spawn(async move {
        let wait = Duration::from_secs(10);
        let goodbye = std::future::pending();
        serve_http2(ours, service, &limits, wait, goodbye).await
    });
    let (mut reader, mut writer) = tokio::io::split(theirs);
    let reading = tokio::spawn(async move {
        let mut written = Vec::new();
        // A reset connection has already written everything.
        _ = reader.read_to_end(&mut written).await;
        written
    });
    let cuts = match choice & 3 {
        0 => Cuts::Every(1),
        1 => Cuts::Whole,
        seed => Cuts::Random(u64::from(seed)),
    };
    let mut pieces = Vec::new();
    if choice & 0x80 == 0 {
        pieces.push(PREFACE.to_vec());
    }
    cuts.for_each_piece(data, |piece| pieces.push(piece.to_vec()));
    for piece in pieces {
        // It may have ended already.
        _ = writer.write_all(&piece).await;
        if choice & 4 != 0 {
            tokio::task::yield_now().await;
        }
    }
    if choice & 8 != 0 {
        // Time advances while all tasks wait; a silent client is disconnected.
        _ = tokio::time::timeout(Duration::from_secs(600), served)
            .await
            .expect("it ends");
        drop(writer);
    } else {
        _ = writer.shutdown().await;
        drop(writer);
        _ = tokio::time::timeout(Duration::from_secs(600), served)
            .await
            .expect("it ends");
    }
    reading.await.expect("reading does not fail")
}

/// RFC 9113 §4.2: frames of more than 16 KiB need a setting that was not given.
fn check_frames(mut written: &[u8]) {
    while let [a, b, c, kind, ..] = written {
        let bytes = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        assert!(bytes <= 1 << 14, "frame {kind} of {bytes} bytes");
        let Some(rest) = written.get(9 + bytes..) else {
            panic!("frame {kind} of {bytes} bytes is incomplete");
        };
        written = rest;
    }
    assert!(written.is_empty(), "a header is incomplete");
}
