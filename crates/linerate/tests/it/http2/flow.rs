//! Flow control in both directions (RFC 9113 §5.2).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use linerate::{Message, Options, Server};
use linerate_testkit::Frame as WebSocketFrame;
use tokio::sync::Notify;

use super::{client, echo_http2, wire::*};
use crate::{raw::in_time, support::Running};

const INITIAL_WINDOW_SIZE: u16 = 0x4;

/// Returns the maximum number of bytes that a server may hold for a stream whose client reads
/// nothing: its queue, one message, and what it has passed to the connection.
fn held_bytes_max(message_bytes: usize) -> usize {
    let options = Options::default();
    options.send_queue_bytes_max + options.http2.send_buffer_bytes_max + 2 * message_bytes
}

/// Returns a server that sends endlessly, and the number of bytes that it has sent.
async fn flooding(message_bytes: usize) -> (Running, Arc<AtomicUsize>) {
    let sent = Arc::<AtomicUsize>::default();
    let counter = sent.clone();
    // Without compression, the bytes counted are the bytes sent.
    let server = Server::new().with_options(Options::default().without_compression());
    let server = Running::start(server, move |mut ws, request| {
        let sent = counter.clone();
        async move {
            if request.path() == "/echo" {
                return echo_http2(ws, request).await;
            }
            loop {
                ws.send(vec![7; message_bytes]).await?;
                sent.fetch_add(message_bytes, Ordering::Relaxed);
            }
        }
    })
    .await;
    (server, sent)
}

#[tokio::test]
async fn s06_a_reader_that_stalls_stops_the_sender() {
    for message_bytes in [100, 64 << 10] {
        let (server, sent) = flooding(message_bytes).await;
        let mut wire = Wire::open(server.address, &[]).await;
        wire.connect(1).await;
        let mut received = 0;
        while received < 65_535 {
            received += wire.next_of(DATA, 1).await.payload.len();
        }
        let more = wire.settle().await;
        assert_eq!(more, [], "the window is used up");
        let sent = sent.load(Ordering::Relaxed);
        let bytes_max = received + held_bytes_max(message_bytes);
        assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
        server.abort();
    }
}

#[tokio::test]
async fn s05_a_window_that_grows_by_single_bytes_is_used_by_single_bytes() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    wire.connect(1).await;
    let message = masked(WebSocketFrame::new(0x1, b"Spam"));
    wire.data(1, &message).await;
    assert_eq!(wire.settle().await, [], "there is no window yet");
    for byte in b"\x81\x04Spam" {
        let one = 1_u32.to_be_bytes();
        wire.send(frame(WINDOW_UPDATE, 0, 1, &one)).await;
        assert_eq!(wire.next_of(DATA, 1).await.payload, [*byte]);
    }
    server.abort();
}

#[tokio::test]
async fn s05_a_window_that_never_opens_is_not_waited_for() {
    let mut options = Options::default();
    options.config.ping_interval = Some(Duration::from_millis(100));
    options.config.ping_timeout = Duration::from_millis(100);
    options.config.close_timeout = Duration::from_millis(100);
    let (ended, end) = tokio::sync::oneshot::channel();
    let ended = std::sync::Mutex::new(Some(ended));
    let server = Server::new().with_options(options);
    let server = Running::start(server, move |mut ws, _| {
        let ended = ended.lock().unwrap().take();
        async move {
            let message = vec![7; 1 << 20];
            while ws.send(message.clone()).await.is_ok() {}
            _ = ended
                .expect("there is only one connection")
                .send(ws.closed());
            Ok(())
        }
    })
    .await;
    let mut wire = Wire::open(server.address, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    wire.connect(1).await;
    in_time(end).await.unwrap();
    wire.next_of(RST_STREAM, 1).await;
    server.abort();
}

#[tokio::test]
async fn the_window_grows_only_as_the_application_takes() {
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    let server = Running::start(Server::new(), move |ws, request| {
        let go = waiting.clone();
        async move {
            go.notified().await;
            echo_http2(ws, request).await
        }
    })
    .await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    let window = Options::default().http2.stream_window_bytes as usize;
    // The server would accept the frames of one endless message, so these are whole messages.
    let message = masked(WebSocketFrame::new(0x2, &[7; 1_000]));
    let messages = window / message.len();
    for _ in 0..messages {
        wire.data(1, &message).await;
    }
    let updates = wire.settle().await;
    let grown: u32 = updates
        .iter()
        .filter(|frame| (frame.kind, frame.stream) == (WINDOW_UPDATE, 1))
        .map(Frame::code)
        .sum();
    let taken_max = Options::default().recv_queue_bytes_max + 2 * message.len();
    assert!(grown as usize <= taken_max + window / 2, "{grown} bytes");
    go.notify_one();
    wire.next_of(WINDOW_UPDATE, 1).await;
    server.abort();
}

#[tokio::test]
async fn small_messages_that_nobody_takes_are_kept_and_come_through() {
    const MESSAGES: usize = 30_000;
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    let server = Running::start(Server::new(), move |mut ws, _| {
        let go = waiting.clone();
        async move {
            go.notified().await;
            for _ in 0..MESSAGES {
                assert_eq!(ws.recv().await?, Some(Message::from("")));
            }
            ws.send("all").await
        }
    })
    .await;
    let mut wire = Wire::open(server.address, &[]).await;
    wire.connect(1).await;
    let empty = frame(DATA, 0, 1, &masked(WebSocketFrame::new(0x1, b"")));
    wire.send(empty.repeat(MESSAGES)).await;
    wire.settle().await;
    go.notify_one();
    assert_eq!(wire.message(1).await, (0x81, b"all".to_vec()));
    server.abort();
}

#[tokio::test]
async fn s07_padding_on_streams_that_were_reset_gives_its_window_back() {
    let mut options = Options::default();
    options.http2.streams_max = 2;
    let window = 2 * options.http2.stream_window_bytes as usize;
    let server = Running::start(Server::new().with_options(options), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let mut padded = vec![255];
    padded.resize(1 + 10_000 + 255, 0);
    let (mut sent, mut granted) = (0, window);
    for index in 0..200 {
        let stream = 1 + 2 * index;
        wire.connect(stream).await;
        let mut bytes = frame(DATA, PADDED, stream, &padded);
        bytes.extend(frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes()));
        // These frames arrive too late, but count all the same (RFC 9113 §5.1).
        wire.send(bytes).await;
        sent += padded.len();
        for frame in wire.settle().await {
            if (frame.kind, frame.stream) == (WINDOW_UPDATE, 0) {
                granted += frame.code() as usize;
            }
        }
        assert!(granted > sent, "{sent} bytes sent, {granted} granted");
    }
    assert!(sent > 3 * window, "the window was used several times");
    assert!(granted - sent >= window / 2, "{sent} of {granted}");
    server.abort();
}

#[tokio::test]
async fn s12_readers_that_stall_leave_room_for_others() {
    const STALLED: u32 = 99;
    let (server, sent) = flooding(10_000).await;
    let mut wire = Wire::open(server.address, &[(INITIAL_WINDOW_SIZE, 0)]).await;
    for index in 0..STALLED {
        wire.connect(1 + 2 * index).await;
    }
    let last = 1 + 2 * STALLED;
    wire.headers(last, &connect_with(":path", Some("/echo")))
        .await;
    wire.next_of(HEADERS, last).await;
    let window = 1_000_u32.to_be_bytes();
    wire.send(frame(WINDOW_UPDATE, 0, last, &window)).await;
    wire.echo(last, "Spam").await;

    wire.headers(last + 2, &CONNECT).await;
    let refused = wire.next_of(RST_STREAM, last + 2).await;
    assert_eq!(
        refused.code(),
        REFUSED_STREAM,
        "one stream more than allowed"
    );

    wire.settle().await;
    let sent = sent.load(Ordering::Relaxed);
    let bytes_max = STALLED as usize * held_bytes_max(10_000);
    assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
    wire.echo(last, "Spam").await;
    server.abort();
}

#[tokio::test]
async fn a_client_that_does_not_receive_slows_the_server() {
    let (server, sent) = flooding(10_000).await;
    let mut ws = client().connect(&server.url()).await.unwrap();
    let first = in_time(ws.recv()).await.unwrap().unwrap();
    assert_eq!(first.len(), 10_000);
    // The client holds up to its window and its queue; the server holds the rest.
    let options = Options::default();
    let window = options.http2.stream_window_bytes as usize;
    let bytes_max = 2 * window + options.recv_queue_bytes_max + 2 * held_bytes_max(10_000);
    let mut other = client()
        .connect(&format!("{}echo", server.url()))
        .await
        .unwrap();
    for _ in 0..100 {
        other.send("Spam").await.unwrap();
        in_time(other.recv()).await.unwrap();
    }
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
    // The stream continues where it stopped.
    for _ in 0..200 {
        assert_eq!(in_time(ws.recv()).await.unwrap().unwrap().len(), 10_000);
    }
    server.abort();
}

#[tokio::test]
async fn a_window_opened_too_far_after_a_refusal_is_an_error_of_the_stream() {
    let server = Running::start(Server::new(), echo_http2).await;
    let mut wire = Wire::open(server.address, &[]).await;
    let request = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "example.com"),
    ];
    wire.headers(1, &request).await;
    while wire.next_of(DATA, 1).await.flags & END_STREAM == 0 {}
    let largest = frame(WINDOW_UPDATE, 0, 1, &(u32::MAX >> 1).to_be_bytes());
    wire.send([&largest[..], &largest].concat()).await;
    let reset = wire.next_of(RST_STREAM, 1).await;
    assert_eq!(reset.code(), FLOW_CONTROL_ERROR);
    wire.connect(3).await;
    server.stop().await;
}
