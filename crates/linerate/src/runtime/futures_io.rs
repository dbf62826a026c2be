//! Streams of the crate `futures-io` as streams of tokio.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of the crate `futures-io`, as smol, async-std and others have them, with tokio's
/// [`AsyncRead`] and [`AsyncWrite`].
///
/// It passes on vectored writes, with which a frame's header and payload need only one system call;
/// `tokio_util::compat` does not.
///
/// ```no_run
/// use linerate::{Client, WebSocket, runtime::{FuturesIo, Runtime}};
/// use smol::net::TcpStream;
///
/// async fn connect(runtime: impl Runtime) -> linerate::Result<WebSocket> {
///     let stream = TcpStream::connect("127.0.0.1:9001").await?;
///     stream.set_nodelay(true)?;
///     let client = Client::new().with_runtime(runtime);
///     client.connect_over(FuturesIo::new(stream), "ws://127.0.0.1:9001/").await
/// }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FuturesIo<S>(S);

impl<S> FuturesIo<S> {
    /// Wraps a stream.
    pub const fn new(stream: S) -> Self {
        Self(stream)
    }

    /// Returns the stream.
    pub const fn get_ref(&self) -> &S {
        &self.0
    }

    /// Returns the stream.
    pub fn into_inner(self) -> S {
        self.0
    }
}

impl<S: futures_io::AsyncRead + Unpin> AsyncRead for FuturesIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let unfilled = buffer.initialize_unfilled();
        let room = unfilled.len();
        let bytes = ready!(Pin::new(&mut self.0).poll_read(cx, unfilled))?;
        // A stream that claims more must not cause a panic.
        buffer.advance(bytes.min(room));
        Poll::Ready(Ok(()))
    }
}

impl<S: futures_io::AsyncWrite + Unpin> AsyncWrite for FuturesIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, slices)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_close(cx)
    }
}
