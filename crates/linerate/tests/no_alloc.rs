//! Nothing is allocated per message once a connection is warm.
//!
//! This is a separate test binary because it counts the calls of the global allocator. Client and
//! server share one thread, so that the allocations of both are counted.
#![allow(clippy::unwrap_used, reason = "a failing test should panic")]

use allocation_counter::measure;
use linerate::{Message, MessageKind, Receiver, Replies, Request, Result, Sender, WebSocket};
use tokio::{net::TcpListener, runtime::Runtime};

/// The number of rounds that are counted together.
const ROUNDS: usize = 30;

/// How often the rounds are repeated before the test fails.
const RUNS_MAX: usize = 20;

/// Returns a single-threaded runtime, and a connection in it to a server that runs `handler`.
fn connect<H, F>(handler: H) -> (Runtime, WebSocket)
where
    H: Fn(WebSocket, Request) -> F + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ws = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        tokio::spawn(linerate::serve(listener, handler, std::future::pending()));
        linerate::connect(&url).await.unwrap()
    });
    (runtime, ws)
}

async fn echo(mut ws: WebSocket, _: Request) -> Result<()> {
    while let Some(message) = ws.recv().await? {
        ws.send(message).await?;
    }
    Ok(())
}

/// tokio's list of the tasks that have yielded. It begins without memory in each `block_on`, of
/// which a program has one.
const FIRST_YIELD: u64 = 1;

/// Runs rounds until the connection is warm, and asserts that further ones allocate nothing.
///
/// How many bytes are queued at a time depends on how the system splits the streams, so it may take
/// a while until buffers have reached their final size. Code that allocates for each message never
/// passes.
fn assert_no_allocation(runtime: &Runtime, name: &str, mut round: impl AsyncFnMut()) {
    let mut run = || {
        measure(|| {
            runtime.block_on(async {
                for _ in 0..ROUNDS {
                    round().await;
                }
            });
        })
    };
    let mut info = run();
    for _ in 0..RUNS_MAX {
        info = run();
        if info.count_total <= FIRST_YIELD {
            return;
        }
    }
    panic!("{name}: {info:?}");
}

#[test]
fn the_counter_counts_what_tasks_do() {
    let (runtime, _ws) = connect(echo);
    let info = measure(|| {
        runtime.block_on(async {
            let task = async { drop(std::hint::black_box(vec![0_u8; 10])) };
            tokio::spawn(task).await.unwrap();
        });
    });
    assert!(info.count_total >= 2, "the task and its vector: {info:?}");
}

#[test]
fn an_echo_allocates_nothing() {
    let (runtime, mut ws) = connect(echo);
    for bytes in [0, 5, 125, 126, 1_400, 16 << 10, 40 << 10, 100 << 10] {
        let text = "x".repeat(bytes);
        assert_no_allocation(&runtime, &format!("{bytes} bytes of text"), async || {
            ws.send_text(&text).await.unwrap();
            let echoed = ws.recv().await.unwrap().unwrap();
            assert_eq!(echoed.as_text(), Some(&*text));
        });
        assert_no_allocation(&runtime, &format!("{bytes} bytes"), async || {
            ws.send_binary(text.as_bytes()).await.unwrap();
            let echoed = ws.recv().await.unwrap().unwrap();
            assert_eq!(echoed.as_bytes(), text.as_bytes());
        });
        assert_no_allocation(&runtime, &format!("{bytes} bytes, moved"), async || {
            ws.send(Message::from(text.as_bytes())).await.unwrap();
            let echoed = ws.recv().await.unwrap().unwrap();
            ws.send(echoed).await.unwrap();
            ws.recv().await.unwrap().unwrap();
        });
    }
}

#[test]
fn messages_of_mixed_sizes_allocate_nothing() {
    let (runtime, mut ws) = connect(echo);
    let payload = vec![7; 100 << 10];
    assert_no_allocation(&runtime, "mixed", async || {
        for bytes in [10, 100 << 10, 0, 5_000, 60_000, 300] {
            ws.send_binary(&payload[..bytes]).await.unwrap();
            let echoed = ws.recv().await.unwrap().unwrap();
            assert_eq!(echoed.len(), bytes);
        }
    });
}

#[test]
fn messages_in_flight_allocate_nothing() {
    let (runtime, mut ws) = connect(echo);
    for bytes in [5, 1_000] {
        let text = "x".repeat(bytes);
        assert_no_allocation(&runtime, &format!("{bytes} bytes"), async || {
            for _ in 0..50 {
                ws.send_text(&text).await.unwrap();
            }
            for _ in 0..50 {
                assert_eq!(ws.recv().await.unwrap().unwrap().as_text(), Some(&*text));
            }
        });
    }
}

#[test]
fn lent_messages_and_their_replies_allocate_nothing() {
    let (runtime, mut ws) = connect(|mut ws, _| async move {
        ws.for_each(|message, replies| {
            replies.push(message);
            Ok(())
        })
        .await
    });
    for bytes in [5, 1_000, 40 << 10] {
        let text = "x".repeat(bytes);
        let mut messages = Replies::new();
        assert_no_allocation(&runtime, &format!("{bytes} bytes"), async || {
            for _ in 0..50 {
                messages.push(&*text);
            }
            ws.send_replies(&mut messages).await.unwrap();
            let mut received = 0;
            while received < 50 {
                let mut batch = ws.recv_batch().await.unwrap().unwrap();
                for message in batch.drain() {
                    assert_eq!(message.as_text(), Some(&*text));
                    received += 1;
                }
            }
        });
    }
}

#[test]
fn halves_allocate_nothing() {
    let (runtime, ws) = connect(|ws, _| async move {
        let (sender, mut receiver): (Sender, Receiver) = ws.split();
        while let Some(message) = receiver.recv().await? {
            sender.send(message).await?;
            sender.flush().await?;
        }
        Ok(())
    });
    let (sender, mut receiver) = ws.split();
    assert_no_allocation(&runtime, "halves", async || {
        for text in ["one", "two"] {
            sender.send(text).await.unwrap();
            let echoed = receiver.recv().await.unwrap().unwrap();
            assert_eq!(echoed.as_text(), Some(text));
        }
    });
}

#[test]
fn messages_in_pieces_allocate_nothing() {
    let (runtime, mut ws) = connect(|mut ws, _| async move {
        while let Some(mut reader) = ws.reader().await? {
            let mut bytes = 0_usize;
            while let Some(chunk) = reader.chunk().await? {
                bytes += chunk.len();
            }
            ws.send_binary(&bytes.to_be_bytes()).await?;
        }
        Ok(())
    });
    let piece = "x".repeat(20_000);
    for kind in [MessageKind::Text, MessageKind::Binary] {
        assert_no_allocation(&runtime, &format!("{kind:?}"), async || {
            let mut writer = ws.writer(kind);
            for _ in 0..10 {
                writer.write(piece.as_bytes()).await.unwrap();
            }
            writer.finish().await.unwrap();
            let total = ws.recv().await.unwrap().unwrap();
            assert_eq!(total.as_bytes(), 200_000_usize.to_be_bytes());
        });
    }
}

#[test]
fn pings_allocate_nothing() {
    let (runtime, mut ws) = connect(echo);
    assert_no_allocation(&runtime, "pings", async || {
        ws.ping(b"are you there?").await.unwrap();
        ws.send_text("Spam").await.unwrap();
        ws.recv().await.unwrap().unwrap();
    });
}

#[test]
fn a_stream_polled_again_and_again_allocates_nothing() {
    use futures_util::{SinkExt, StreamExt};
    let (runtime, mut ws) = connect(|ws, _| async move {
        let (sink, stream) = StreamExt::split(ws);
        stream.forward(sink).await
    });
    assert_no_allocation(&runtime, "stream", async || {
        SinkExt::send(&mut ws, Message::from("Spam")).await.unwrap();
        let echoed = ws.next().await.unwrap().unwrap();
        assert_eq!(echoed.as_text(), Some("Spam"));
    });
}
