//! Any bytes from a peer as input of a connection of the library: an application receives what the
//! engine alone finds in them, in whatever pieces they arrive and by whatever calls it receives.
#![no_main]

use std::{
    collections::VecDeque,
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use libfuzzer_sys::fuzz_target;
use linerate::{Error, Message, MessageCow, Options, WebSocket, parts::Parts};
use linerate_proto::{Config, Engine, ProtocolError, Role, engine::MessageKind};
use linerate_testkit::{Cuts, Seen, TestEndpoint, feed};
use tokio::{
    io::{AsyncRead, ReadBuf, join, sink},
    runtime::Builder,
};

/// How an application receives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Calls {
    /// Messages in batches.
    Batches,
    /// Messages in chunks.
    Chunks,
    /// Messages, alone and in batches, with calls that are dropped while they wait; the connection
    /// reads ahead in between.
    Dropped,
    /// Messages, one by one.
    Messages,
}

/// What an application has received.
#[derive(Debug, PartialEq)]
struct Received {
    messages: Vec<(MessageKind, Vec<u8>)>,
    end: End,
}

/// How a connection ended.
#[derive(Debug, PartialEq)]
enum End {
    /// The peer has sent a Close frame.
    Closed(Option<u16>, String),
    /// The peer broke the rules or a limit.
    Failed(ProtocolError),
    /// The stream ended before.
    Lost,
}

// The first byte chooses the role, and how random pieces are cut.
fuzz_target!(|data: &[u8]| {
    let Some((choice, wire)) = data.split_first() else {
        return;
    };
    let role = match choice & 1 {
        0 => Role::Server,
        _ => Role::Client,
    };
    // The clock is paused, so that deadlines pass at once.
    let runtime = Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without sockets starts");
    // Limits on messages apply to whole messages: not to chunks, and to what is read ahead only
    // once it is received.
    for (config, all_calls) in [
        (limited(), [Calls::Batches, Calls::Messages]),
        (unlimited(), [Calls::Chunks, Calls::Dropped]),
    ] {
        let expected = of_engine(role, &config, wire);
        for calls in all_calls {
            for cuts in [Cuts::Whole, Cuts::Random(u64::from(*choice))] {
                let received = of_library(role, &config, wire, cuts, calls);
                let received = runtime.block_on(received);
                assert_eq!(received, expected, "{calls:?}, {cuts:?}");
            }
        }
    }
});

/// Low limits that short inputs can reach.
fn limited() -> Config {
    let mut config = Config::default();
    config.limits.message_bytes_max = 300;
    config.limits.frame_bytes_max = 200;
    config.limits.fragments_max = 4;
    config
}

fn unlimited() -> Config {
    let mut config = Config::default();
    config.limits.message_bytes_max = u64::MAX;
    config.limits.fragments_max = u32::MAX;
    config
}

fn of_engine(role: Role, config: &Config, wire: &[u8]) -> Received {
    let config = Arc::new(config.clone());
    let mut engine = Engine::new(TestEndpoint(role), config, Duration::ZERO);
    let mut messages = Vec::new();
    for seen in feed(&mut engine, wire, Cuts::Whole).seen {
        let end = match seen {
            Seen::Close { code, reason } => End::Closed(code, reason),
            Seen::Error(error) => End::Failed(error),
            Seen::Message { kind, bytes } => {
                messages.push((kind, bytes));
                continue;
            }
            Seen::Ping(_) | Seen::Pong(_) => continue,
        };
        return Received { messages, end };
    }
    let end = End::Lost;
    Received { messages, end }
}

async fn of_library(
    role: Role,
    config: &Config,
    wire: &[u8],
    cuts: Cuts,
    calls: Calls,
) -> Received {
    let mut stream = Stream::default();
    cuts.for_each_piece(wire, |piece| stream.pieces.push_back(piece.to_vec()));
    // An empty read would be the end.
    stream.pieces.retain(|piece| !piece.is_empty());
    let mut options = Options::default();
    options.config = config.clone();
    let parts = Parts::new(join(stream, sink()), role);
    let mut application = Application {
        ws: WebSocket::from_parts(parts, options),
        messages: Vec::new(),
    };
    let error = application.receive(calls).await.err();
    let closed = application.ws.closed();
    let closed = closed.expect("the connection has ended");
    let end = match (error, closed.received) {
        (Some(Error::Protocol(error)), _) => End::Failed(error),
        (None | Some(Error::Abnormal), Some(frame)) => {
            End::Closed(frame.code.map(|code| code.as_u16()), frame.reason.into())
        }
        (Some(Error::Abnormal), None) => End::Lost,
        (error, received) => panic!("{error:?}, {received:?}"),
    };
    let messages = application.messages;
    Received { messages, end }
}

struct Application {
    ws: WebSocket,
    messages: Vec<(MessageKind, Vec<u8>)>,
}

impl Application {
    /// Receives messages up to the end of the connection.
    async fn receive(&mut self, calls: Calls) -> linerate::Result<()> {
        loop {
            let is_over = match calls {
                Calls::Batches => self.batch(usize::MAX).await?,
                Calls::Chunks => self.chunks().await?,
                Calls::Dropped if self.messages.len() % 2 == 0 => self.batch(1).await?,
                Calls::Dropped => self.message(1).await?,
                Calls::Messages => self.message(usize::MAX).await?,
            };
            if is_over {
                return Ok(());
            }
        }
    }

    /// Receives a message; returns whether the connection is over.
    async fn message(&mut self, polls: usize) -> linerate::Result<bool> {
        let message = retry(polls, async || self.ws.recv().await).await?;
        let is_over = message.is_none();
        self.add(message);
        Ok(is_over)
    }

    /// Receives a batch of messages; returns whether the connection is over.
    async fn batch(&mut self, polls: usize) -> linerate::Result<bool> {
        let batch = retry(polls, async || self.ws.recv_batch().await).await?;
        let Some(mut batch) = batch else {
            return Ok(true);
        };
        self.add(batch.drain().map(MessageCow::into_message));
        Ok(false)
    }

    /// Receives the chunks of a message; returns whether the connection is over.
    async fn chunks(&mut self) -> linerate::Result<bool> {
        let Some(mut reader) = self.ws.reader().await? else {
            return Ok(true);
        };
        let mut bytes = Vec::new();
        while let Some(chunk) = reader.chunk().await? {
            assert_eq!(chunk.kind(), reader.kind());
            bytes.extend_from_slice(chunk.as_bytes());
        }
        self.messages.push((reader.kind(), bytes));
        Ok(false)
    }

    fn add(&mut self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let bytes = message.as_bytes().to_vec();
            self.messages.push((message.kind(), bytes));
        }
    }
}

/// Repeats a call until it is complete; each time, it is dropped after `polls` polls.
async fn retry<T>(
    polls: usize,
    mut call: impl AsyncFnMut() -> linerate::Result<T>,
) -> linerate::Result<T> {
    loop {
        if let Some(output) = polled(call(), polls).await {
            return output;
        }
        // The connection reads ahead.
        tokio::task::yield_now().await;
    }
}

/// Polls `future` up to `polls` times, then drops it.
async fn polled<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => {
            left -= 1;
            if left == 0 {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        }
    })
    .await
}

/// A peer that sends pieces; before each of them, and before the end, the reader has to wait.
#[derive(Default)]
struct Stream {
    pieces: VecDeque<Vec<u8>>,
    has_waited: bool,
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.has_waited ^= true;
        if self.has_waited {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Some(mut piece) = self.pieces.pop_front() else {
            return Poll::Ready(Ok(()));
        };
        let rest = piece.split_off(piece.len().min(buffer.remaining()));
        buffer.put_slice(&piece);
        if !rest.is_empty() {
            self.pieces.push_front(rest);
        }
        Poll::Ready(Ok(()))
    }
}
