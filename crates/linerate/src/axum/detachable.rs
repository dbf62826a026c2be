//! Streams that can be taken away from an HTTP server.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The stream of an HTTP/1.1 connection that a handler can take away from the HTTP server, for
/// example to write the response itself. The server then sees the end of the stream, and what it
/// writes is discarded.
///
/// WebSockets on such a stream are served as if the server had the stream itself.
///
/// ```
/// use std::future::poll_fn;
///
/// use linerate::axum::Detachable;
/// use tokio::io::{AsyncReadExt, duplex};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let (stream, _peer) = duplex(64);
/// let mut stream = Detachable::new(stream);
/// let detacher = stream.detacher();
/// // A handler, while the HTTP server has `stream`:
/// let taken = poll_fn(|cx| detacher.poll_detach(cx)).await;
/// assert!(taken.is_some());
/// assert_eq!(stream.read(&mut [0; 64]).await?, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Detachable<S>(Arc<Mutex<Shared<S>>>);

/// Takes the stream away from the HTTP server that has the [`Detachable`].
#[derive(Debug)]
pub struct Detacher<S>(Arc<Mutex<Shared<S>>>);

#[derive(Debug)]
struct Shared<S> {
    /// `None` once it was taken away.
    stream: Option<S>,
    /// True if the HTTP server may have output that is not written.
    is_writing: bool,
    /// What waits for the output to be written.
    waiting: Option<Waker>,
}

impl<S> Detachable<S> {
    /// Wraps a stream, which is then passed to an HTTP server.
    pub fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(Shared {
            stream: Some(stream),
            is_writing: false,
            waiting: None,
        })))
    }

    /// Returns what takes the stream away from the HTTP server.
    pub fn detacher(&self) -> Detacher<S> {
        Detacher(self.0.clone())
    }

    /// Returns the stream, unless it was taken away.
    pub fn into_inner(self) -> Option<S> {
        lock(&self.0).stream.take()
    }
}

impl<S> Detacher<S> {
    /// Takes the stream away once the HTTP server has written everything before it, such as earlier
    /// responses; returns `None` if it already was. Call this in the task that serves the
    /// connection, for example in a handler: the server learns of the end when the task is polled
    /// again, for which it is woken.
    pub fn poll_detach(&self, cx: &mut Context<'_>) -> Poll<Option<S>> {
        let mut shared = lock(&self.0);
        if shared.is_writing {
            shared.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        // The HTTP server waits for the stream, which will not wake it any more.
        cx.waker().wake_by_ref();
        Poll::Ready(shared.stream.take())
    }
}

impl<S> Clone for Detacher<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Detachable<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut lock(&self.0).stream {
            Some(stream) => Pin::new(stream).poll_read(cx, buffer),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Detachable<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut shared = lock(&self.0);
        let Some(stream) = &mut shared.stream else {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        };
        let written = Pin::new(stream).poll_write_vectored(cx, slices);
        shared.is_writing = true;
        written
    }

    fn is_write_vectored(&self) -> bool {
        let shared = lock(&self.0);
        shared
            .stream
            .as_ref()
            .is_none_or(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = lock(&self.0);
        if let Some(stream) = &mut shared.stream {
            ready!(Pin::new(stream).poll_flush(cx))?;
        }
        shared.is_writing = false;
        if let Some(waiting) = shared.waiting.take() {
            waiting.wake();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut lock(&self.0).stream {
            Some(stream) => Pin::new(stream).poll_shutdown(cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

fn lock<S>(shared: &Mutex<Shared<S>>) -> MutexGuard<'_, Shared<S>> {
    // A stream that has panicked is left to the HTTP server.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
