//! Connections over in-memory streams, in both roles, with a paused clock.

mod batch;
mod cancel;
mod control;
mod cork;
mod ends;
mod frames;
mod in_place;
mod pressure;
mod rooms;
mod round_trips;
mod streams;
mod turns;

use std::{
    future::Future,
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use linerate_proto::{Header, Role};
use linerate_testkit::Frame;
use tokio::{
    io::{
        AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, ReadHalf,
        WriteHalf,
    },
    task::{JoinHandle, yield_now},
};

use super::*;
use crate::{Error, Options, WebSocket, runtime::RuntimeHandle};

/// Where the application runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// In its own task, separate from the driver, as for a client.
    Client,
    /// In the driver's task, as for the handler of a server.
    Handler,
    /// On the server side, in a task other than the driver's.
    Server,
}

const PLACES: [Place; 3] = [Place::Client, Place::Handler, Place::Server];

impl Place {
    fn role(self) -> Role {
        match self {
            Self::Client => Role::Client,
            Self::Handler | Self::Server => Role::Server,
        }
    }

    /// Starts a connection over a pipe that holds `pipe_bytes`, and runs the application on it.
    fn start<F, T>(
        self,
        pipe_bytes: usize,
        options: Options,
        application: impl FnOnce(WebSocket) -> F,
    ) -> (Peer, JoinHandle<T>)
    where
        F: Future<Output = T> + Send + 'static,
        T: Send + 'static,
    {
        let (ours, theirs) = tokio::io::duplex(pipe_bytes);
        let calls = Arc::<Calls>::default();
        let io = Transport::Other(Box::new(Counted(ours, calls.clone())));
        let link = Link::new(
            io,
            self.role(),
            &options.into(),
            b"",
            HandshakeResult::default(),
        );
        let application = application(WebSocket::new(link.clone()));
        let running = if self == Self::Handler {
            let (give, take) = tokio::sync::oneshot::channel();
            let handler = async move {
                _ = give.send(application.await);
                Ok(())
            };
            tokio::spawn(Driver::new(
                link,
                handler,
                Alarm::own(&RuntimeHandle::Tokio),
            ));
            tokio::spawn(async { take.await.expect("the handler ends") })
        } else {
            tokio::spawn(Driver::without_handler(link, &RuntimeHandle::Tokio));
            tokio::spawn(application)
        };
        (Peer::new(self.role(), theirs, calls), running)
    }
}

/// How often a stream was called.
#[derive(Debug, Default)]
struct Calls {
    reads: AtomicUsize,
    writes: AtomicUsize,
}

/// A stream that counts calls, including those that returned pending.
struct Counted(DuplexStream, Arc<Calls>);

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.reads.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.1.writes.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The other end, which reads and writes bytes without using the library.
struct Peer {
    reader: PeerReader,
    writer: PeerWriter,
    calls: Arc<Calls>,
}

struct PeerReader {
    stream: ReadHalf<DuplexStream>,
    read: Vec<u8>,
}

struct PeerWriter {
    stream: WriteHalf<DuplexStream>,
    to: Role,
}

impl Peer {
    fn new(to: Role, stream: DuplexStream, calls: Arc<Calls>) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        Self {
            reader: PeerReader {
                stream: reader,
                read: Vec::new(),
            },
            writer: PeerWriter { stream: writer, to },
            calls,
        }
    }

    async fn send(&mut self, frame: Frame) {
        self.writer.send(frame).await;
    }

    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        self.reader.frame().await
    }

    fn writes(&self) -> usize {
        self.calls.writes.load(Ordering::Relaxed)
    }
}

impl PeerReader {
    /// Returns the first byte of the next frame and its payload, or `None` at the end of the
    /// stream.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some((header, prefix)) = Header::decode(&self.read).expect("a legal header")
                && self.read.len() >= prefix + header.payload_bytes as usize
            {
                let end = prefix + header.payload_bytes as usize;
                let key = header.mask.map_or([0; 4], |MaskKey(key)| key);
                let payload = self.read[prefix..end].iter().zip(key.iter().cycle());
                let payload = payload.map(|(byte, key)| byte ^ key).collect();
                let first = self.read[0];
                self.read.drain(..end);
                return Some((first, payload));
            }
            let mut bytes = [0; 4_096];
            let count = self.stream.read(&mut bytes).await.expect("a pipe");
            if count == 0 {
                assert!(self.read.is_empty(), "a torn frame: {:?}", self.read);
                return None;
            }
            self.read.extend_from_slice(&bytes[..count]);
        }
    }

    /// Returns all frames up to the end of the stream.
    async fn frames(mut self) -> Vec<(u8, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame().await {
            frames.push(frame);
        }
        frames
    }
}

impl PeerWriter {
    async fn send(&mut self, frame: Frame) {
        let bytes = frame.to_role(self.to).to_bytes();
        self.send_bytes(&bytes).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("a pipe");
    }

    /// Returns the bytes of all `frames`.
    fn wire(&self, frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
        let frames = frames.into_iter();
        frames.flat_map(|f| f.to_role(self.to).to_bytes()).collect()
    }
}

/// Fails a test that waits for something that never happens: the clock jumps to the timeout as soon
/// as no task can run.
async fn in_time<F: Future>(future: F) -> F::Output {
    let day = Duration::from_secs(86_400);
    tokio::time::timeout(day, future).await.expect("it ends")
}

/// Polls `future` `polls` times, giving all other tasks a turn after each poll; then drops it.
async fn poll_times<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    for _ in 0..polls {
        let polled = std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
        if let Poll::Ready(output) = polled {
            return Some(output);
        }
        yield_now().await;
    }
    None
}

/// Returns options without keepalive.
fn quiet() -> Options {
    let mut options = Options::default();
    options.config.ping_interval = None;
    options
}

/// Returns a Close frame with `code`.
fn close(code: u16) -> Frame {
    Frame::new(0x8, &code.to_be_bytes())
}

/// Counts how often a task is polled.
#[derive(Clone, Default)]
struct Polls(Arc<AtomicUsize>);

impl Polls {
    async fn count<F: Future>(self, future: F) -> F::Output {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| {
            self.0.fetch_add(1, Ordering::Relaxed);
            future.as_mut().poll(cx)
        })
        .await
    }

    fn so_far(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
