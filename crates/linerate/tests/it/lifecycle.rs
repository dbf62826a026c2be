//! Connections that end unexpectedly. Tests whose names begin with K and a number are rows of the
//! project's table of bad inputs.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use linerate::{Client, Counters, Error, Options, Server};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

use crate::{
    raw::{REQUEST, Raw, in_time},
    relay::answer_handshake,
    support::{Running, echo},
};

/// A stream that stops accepting bytes on request.
struct Stubborn {
    stream: DuplexStream,
    is_full: Arc<AtomicBool>,
}

impl AsyncRead for Stubborn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stubborn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_full.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(0));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn k05_sockets_that_die_while_they_are_upgraded_leave_the_server_alone() {
    let counters = Arc::<Counters>::default();
    let server = Running::start(counting(&counters), echo).await;
    for bytes in 0..=REQUEST.len() {
        let mut raw = Raw::connect(server.address).await;
        raw.send(&REQUEST.as_bytes()[..bytes]).await;
        // The connection is reset, so that the response finds no socket.
        raw.stream.set_zero_linger().unwrap();
    }
    let mut raw = Raw::open(server.address).await;
    raw.send(b"\x81\x80\0\0\0\0").await;
    assert_eq!(raw.frame().await, Some((0x81, Vec::new())));
    drop(raw);
    assert_gone(&counters).await;
    server.stop().await;
}

#[tokio::test]
async fn k06_a_stream_that_takes_nothing_is_given_up() {
    let (stream, mut theirs) = duplex(1 << 16);
    let is_full = Arc::<AtomicBool>::default();
    let stubborn = Stubborn {
        stream,
        is_full: is_full.clone(),
    };
    let client = Client::new();
    let connecting = client.connect_over(stubborn, "ws://example.com/");
    let (ws, ()) = tokio::join!(connecting, answer_handshake(&mut theirs));
    let mut ws = ws.unwrap();
    is_full.store(true, Ordering::Relaxed);
    // Whichever task notices the error, the connection is over for all of them.
    _ = ws.send("Spam").await;
    assert!(in_time(ws.flush()).await.is_err());
    let error = in_time(ws.recv()).await.unwrap_err();
    let Error::Io(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), io::ErrorKind::WriteZero);
    assert!(in_time(ws.send("too late")).await.is_err());
}

#[tokio::test]
async fn k06_a_peer_that_will_send_nothing_more_ends_the_connection() {
    let counters = Arc::<Counters>::default();
    let server = Running::start(counting(&counters), echo).await;
    let mut raw = Raw::open(server.address).await;
    // Half of a frame, and then the end of that direction only.
    raw.send(b"\x81\x84\0\0\0\0Sp").await;
    tokio::io::AsyncWriteExt::shutdown(&mut raw.stream)
        .await
        .unwrap();
    assert_eq!(
        raw.frame().await,
        None,
        "the peer could not answer a Close frame"
    );
    assert_gone(&counters).await;
    server.stop().await;
}

#[tokio::test]
async fn k09_a_peer_that_goes_without_a_close_leaves_nothing_behind() {
    let counters = Arc::<Counters>::default();
    let server = Running::start(counting(&counters), echo).await;
    for is_reset in [false, true] {
        let mut raw = Raw::open(server.address).await;
        raw.send(b"\x81\x80\0\0\0\0").await;
        assert_eq!(raw.frame().await, Some((0x81, Vec::new())));
        assert_eq!(counters.connections(), 1);
        if is_reset {
            raw.stream.set_zero_linger().unwrap();
        }
        drop(raw);
        assert_gone(&counters).await;
    }
    // Stopping returns once no task of a connection is left.
    in_time(server.stop()).await;
}

fn counting(counters: &Arc<Counters>) -> Server {
    let mut options = Options::default();
    options.counters = Some(counters.clone());
    Server::new().with_options(options)
}

/// Waits until the server has no connection.
async fn assert_gone(counters: &Counters) {
    in_time(async {
        while counters.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
