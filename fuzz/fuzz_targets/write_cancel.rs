//! Calls of an application that are dropped after any number of polls: no frame is incomplete, and
//! no message is lost, duplicated or out of order.
#![no_main]

use std::{collections::VecDeque, future::Future, pin::pin, task::Poll, time::Duration};

use libfuzzer_sys::fuzz_target;
use linerate::{Client, CloseCode, Message, MessageCow, Options, Replies, WebSocket};
use linerate_proto::{
    Engine, Role,
    engine::MessageKind,
    handshake::{HandshakeLimits, RequestReader},
};
use linerate_testkit::{Cuts, Record, Seen, TestEndpoint, feed_on};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

// The first byte is the size of the pipe; then three bytes are a call: its kind, its number of
// polls, its length. A small pipe is slow and is given fewer calls.
fuzz_target!(|data: &[u8]| {
    let Some((pipe, calls)) = data.split_first() else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime needs nothing but memory");
    let pipe_bytes = 1 + usize::from(*pipe);
    let calls: Vec<_> = calls.chunks_exact(3).take(4 + pipe_bytes).collect();
    runtime.block_on(run(pipe_bytes, &calls));
});

async fn run(pipe_bytes: usize, calls: &[&[u8]]) {
    let (ours, theirs) = tokio::io::duplex(pipe_bytes);
    let expected_back = calls.iter().filter(|call| call[0] % 8 == 4).count();
    let peer = tokio::spawn(peer(theirs, expected_back));
    let client = Client::new().with_options(Options::default().without_compression());
    let mut ws = client
        .connect_over(ours, "ws://a/")
        .await
        .expect("the peer accepts");
    let mut application = Application::default();
    for (number, call) in calls.iter().enumerate() {
        application.call(&mut ws, number, call).await;
    }
    let closed = ws
        .close(CloseCode::NORMAL, "")
        .await
        .expect("the reason is short");
    assert!(closed.clean, "{closed:?}");
    let limit = Duration::from_secs(60);
    let seen = tokio::time::timeout(limit, peer)
        .await
        .expect("it ends")
        .expect("no panic");
    assert_eq!(seen.messages, application.sent);
    assert!(
        seen.pings >= application.pings,
        "every ping that was sent has arrived"
    );
}

/// What an application has done.
#[derive(Default)]
struct Application {
    sent: Vec<Vec<u8>>,
    pings: usize,
    received: u8,
    /// Messages of a batch that were not expected yet.
    batch: VecDeque<Message>,
}

impl Application {
    async fn call(&mut self, ws: &mut WebSocket, number: usize, call: &[u8]) {
        let (kind, polls, length) = (call[0] % 8, usize::from(call[1] % 32), usize::from(call[2]));
        let payload = [number.to_le_bytes().to_vec(), vec![7; length * 2]].concat();
        match kind {
            0 => {
                let message = Message::from(payload.clone());
                if let Some(sent) = polled(ws.send(message), polls).await {
                    sent.expect("it is open");
                    self.sent.push(payload);
                }
            }
            1 => {
                let mut replies = Replies::new();
                replies.push(&payload[..]);
                replies.push(vec![8; length * 300]);
                if let Some(sent) = polled(ws.send_replies(&mut replies), polls).await {
                    sent.expect("it is open");
                    self.sent.extend([payload, vec![8; length * 300]]);
                }
            }
            2 => self.write(ws, &payload, polls).await,
            3 => {
                if let Some(sent) = polled(ws.ping(b"ping"), polls).await {
                    sent.expect("it is open");
                    self.pings += 1;
                }
            }
            4 => self.receive(ws, polls).await,
            5 => {
                _ = polled(ws.flush(), polls).await;
            }
            6 => tokio::time::advance(Duration::from_millis(length as u64)).await,
            _ => tokio::task::yield_now().await,
        }
    }

    /// Sends fragments; each of them is sent completely or not at all.
    async fn write(&mut self, ws: &mut WebSocket, payload: &[u8], polls: usize) {
        let mut writer = ws.writer(MessageKind::Binary);
        let mut written = Vec::new();
        for piece in payload.chunks(50) {
            if let Some(sent) = polled(writer.write(piece), polls).await {
                sent.expect("it is open");
                written.extend_from_slice(piece);
            }
        }
        writer.finish().await.expect("it is open");
        self.sent.push(written);
    }

    /// Receives one message, alone or in a batch, dropping the call repeatedly.
    async fn receive(&mut self, ws: &mut WebSocket, polls: usize) {
        while self.batch.is_empty() {
            if polls % 2 == 0 {
                let received = self.retry(polls, async || ws.recv().await).await;
                self.batch.extend(received);
                continue;
            }
            let mut batch = self.retry(polls, async || ws.recv_batch().await).await;
            let batch = batch.iter_mut().flat_map(|batch| batch.drain());
            self.batch.extend(batch.map(MessageCow::into_message));
        }
        let message = self.batch.pop_front();
        let message = message.expect("the loop has received one");
        assert_eq!(message.as_bytes(), [self.received; 40]);
        self.received = self.received.wrapping_add(1);
    }

    /// Polls what `receive` returns; drops it three times before the last.
    async fn retry<T>(
        &self,
        polls: usize,
        mut receive: impl AsyncFnMut() -> linerate::Result<Option<T>>,
    ) -> Option<T> {
        for _ in 0..3 {
            if let Some(received) = polled(receive(), polls).await {
                return received.expect("the peer follows the protocol");
            }
        }
        let received = receive().await.expect("the peer follows the protocol");
        assert!(received.is_some(), "another message follows");
        received
    }
}

/// Polls `future` up to `polls` times, then drops it.
async fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
}

/// What the server has seen.
struct Peer {
    messages: Vec<Vec<u8>>,
    pings: usize,
}

/// A server that uses only the engine, and sends `count` messages.
async fn peer(mut io: DuplexStream, count: usize) -> Peer {
    let mut reader = RequestReader::new(HandshakeLimits::default());
    let mut answer = Vec::new();
    while answer.is_empty() {
        let byte = [io.read_u8().await.expect("the client sends a request")];
        if let Some((request, _)) = reader.handle_input(&byte).expect("the request is valid") {
            request
                .websocket()
                .expect("it is")
                .accept()
                .encode(&mut answer);
        }
    }
    io.write_all(&answer).await.expect("the client reads");
    let mut engine = Engine::new(
        TestEndpoint(Role::Server),
        Default::default(),
        Duration::ZERO,
    );
    let mut record = Record::default();
    let (mut read, mut write) = tokio::io::split(io);
    let mut out = Vec::new();
    for number in 0..count {
        let sent = engine.send(&mut out, MessageKind::Binary, &[number as u8; 40]);
        sent.expect("it is open");
    }
    let (give, mut take) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    let writing = tokio::spawn(async move {
        while let Some(bytes) = take.recv().await {
            // The client may have left.
            _ = write.write_all(&bytes).await;
        }
    });
    _ = give.send(out);
    let mut buffer = [0; 100];
    loop {
        let bytes = read.read(&mut buffer).await.unwrap_or_default();
        if bytes == 0 {
            break;
        }
        record = feed_on(record, &mut engine, &buffer[..bytes], Cuts::Whole);
        _ = give.send(std::mem::take(&mut record.output));
        if engine.ends_stream() {
            break;
        }
    }
    drop(give);
    _ = writing.await;
    judge(record)
}

fn judge(record: Record) -> Peer {
    let (mut messages, mut pings) = (Vec::new(), 0);
    for seen in record.seen {
        match seen {
            Seen::Message { bytes, .. } => messages.push(bytes),
            Seen::Ping(_) => pings += 1,
            Seen::Close { code, .. } => assert_eq!(code, Some(1000)),
            Seen::Pong(_) => {}
            Seen::Error(error) => panic!("a frame is incomplete: {error}"),
        }
    }
    assert_eq!(record.unfinished, None, "a message is incomplete");
    Peer { messages, pings }
}
