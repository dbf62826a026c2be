//! Flow control in both directions (RFC 9000 §4).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use linerate::{Message, Options, Server};
use linerate_testkit::Frame as WebSocketFrame;
use quinn::TransportConfig;
use tokio::{sync::Notify, time::timeout};

use super::{Running, echo_http3, wire::*};
use crate::raw::in_time;

/// The window of a client that must not be flooded.
const WINDOW: usize = 100_000;

/// If a window has had no room for this long, it will get none.
const SILENCE: Duration = Duration::from_millis(500);

/// Returns a server that sends endlessly, and the number of bytes that it has sent.
fn flooding(message_bytes: usize) -> (Running, Arc<AtomicUsize>) {
    let sent = Arc::<AtomicUsize>::default();
    let counter = sent.clone();
    // Without compression, the bytes counted are the bytes sent.
    let server = Server::new().with_options(Options::default().without_compression());
    let server = Running::start(server, move |mut ws, request| {
        let sent = counter.clone();
        async move {
            if request.path() == "/echo" {
                return echo_http3(ws, request).await;
            }
            loop {
                ws.send(vec![7; message_bytes]).await?;
                sent.fetch_add(message_bytes, Ordering::Relaxed);
            }
        }
    });
    (server, sent)
}

fn narrow() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(code(WINDOW as u32));
    transport
}

/// Returns the maximum number of bytes that a server may hold for a stream whose client reads
/// nothing: its queue, one message, and one frame that is partly written.
fn held_bytes_max(message_bytes: usize) -> usize {
    Options::default().send_queue_bytes_max + 2 * message_bytes + (64 << 10)
}

/// Waits until a server that may send no more has stopped.
async fn settle(wire: &Wire, sent: &AtomicUsize) -> usize {
    let mut before = usize::MAX;
    loop {
        let mut stream = wire.request(&connect_with(":path", Some("/echo"))).await;
        stream.next().await.unwrap();
        for _ in 0..20 {
            stream.echo("Spam").await;
        }
        let now = sent.load(Ordering::Relaxed);
        if now == before {
            return now;
        }
        before = now;
    }
}

#[tokio::test]
async fn s06_a_reader_that_stalls_stops_the_sender() {
    for message_bytes in [100, 64 << 10] {
        let (server, sent) = flooding(message_bytes);
        let wire = Wire::open_with(&server, CONTROL, narrow()).await;
        let mut stream = wire.connect().await;
        let sent_bytes = settle(&wire, &sent).await;
        let bytes_max = WINDOW + held_bytes_max(message_bytes);
        assert!(
            sent_bytes <= bytes_max,
            "{sent_bytes} bytes, of at most {bytes_max}"
        );
        // The stream continues where it stopped.
        let mut read = 0;
        while read < 3 * WINDOW {
            read += stream.next().await.unwrap().1.len();
        }
        server.abort();
    }
}

#[tokio::test]
async fn s12_readers_that_stall_leave_room_for_others() {
    const STALLED: usize = 20;
    let (server, sent) = flooding(10_000);
    let wire = Wire::open_with(&server, CONTROL, narrow()).await;
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        stalled.push(wire.connect().await);
    }
    let sent = settle(&wire, &sent).await;
    let bytes_max = STALLED * (WINDOW + held_bytes_max(10_000));
    assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
    server.abort();
}

#[tokio::test]
async fn the_window_grows_only_as_the_application_takes() {
    const MESSAGES: usize = 2_000;
    let go = Arc::new(Notify::new());
    let waiting = go.clone();
    let server = Running::start(Server::new(), move |mut ws, _| {
        let go = waiting.clone();
        async move {
            go.notified().await;
            for _ in 0..MESSAGES {
                ws.recv().await?;
            }
            ws.send("all").await?;
            std::future::pending().await
        }
    });
    let wire = Wire::open(&server).await;
    let mut stream = wire.connect().await;
    let message = masked(WebSocketFrame::new(0x2, &[7; 1_000]));
    let bytes = frame(DATA, &message).repeat(MESSAGES);
    let options = Options::default();
    let window = options.http3.stream_window_bytes as usize;
    let taken_max = 2 * window + 2 * options.recv_queue_bytes_max;
    assert!(bytes.len() > taken_max);
    let mut written = 0;
    // Waiting longer does not make the written bytes arrive sooner.
    while let Ok(more) = timeout(SILENCE, stream.send.write(&bytes[written..])).await {
        written += more.unwrap();
    }
    assert!(
        written <= taken_max,
        "{written} bytes, of at most {taken_max}"
    );
    go.notify_one();
    in_time(stream.send.write_all(&bytes[written..]))
        .await
        .unwrap();
    assert_eq!(stream.message().await, (0x81, b"all".to_vec()));
    server.abort();
}

#[tokio::test]
async fn a_client_that_does_not_receive_slows_the_server() {
    let (server, sent) = flooding(10_000);
    let mut ws = server.connect().await;
    let first = in_time(ws.recv()).await.unwrap().unwrap();
    assert_eq!(first.len(), 10_000);
    let options = Options::default();
    let window = options.http3.stream_window_bytes as usize;
    let bytes_max = 2 * window + 2 * options.recv_queue_bytes_max + held_bytes_max(10_000);
    let wire = Wire::open(&server).await;
    let sent = settle(&wire, &sent).await;
    assert!(sent <= bytes_max, "{sent} bytes, of at most {bytes_max}");
    for _ in 0..200 {
        let next = in_time(ws.recv()).await.unwrap();
        assert_eq!(next, Some(Message::from(vec![7; 10_000])));
    }
    server.abort();
}
