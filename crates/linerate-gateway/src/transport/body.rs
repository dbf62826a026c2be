//! A streaming HTTP response body.

use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use axum::{
    body::Body,
    http::header,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;

use parking_lot::Mutex;

use super::wire::Wire;
use crate::protocol::{Block, codes::Disconnect};

/// Converts a [`Disconnect`] to the last bytes of the body, if any.
type Farewell = fn(&Disconnect) -> Option<Bytes>;

/// Creates a body that holds up to `bytes_max` unsent bytes plus one piece.
///
/// `guard` is dropped with the body: when the body has ended, or the client has disconnected. The
/// encoder of a block accounts for its memory.
pub(crate) fn body<G: Send + 'static>(
    bytes_max: usize,
    farewell: Farewell,
    guard: G,
) -> (BodyWire, BodyStream) {
    let buffer = Arc::new(BodyBuffer {
        bytes_max: bytes_max.max(1),
        queue: Mutex::default(),
    });
    let wire = BodyWire {
        buffer: buffer.clone(),
        farewell,
    };
    let guard = Box::new(guard);
    (
        wire,
        BodyStream {
            buffer,
            guard: Some(guard),
        },
    )
}

/// The writing end of a body.
pub(crate) struct BodyWire {
    buffer: Arc<BodyBuffer>,
    farewell: Farewell,
}

/// The body, as the HTTP server reads it.
pub(crate) struct BodyStream {
    buffer: Arc<BodyBuffer>,
    guard: Option<Box<dyn Send>>,
}

/// The unsent bytes between the two ends of a body.
#[derive(Debug)]
struct BodyBuffer {
    bytes_max: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// True once either side has closed the body.
    is_over: bool,
}

impl BodyBuffer {}

impl Queue {
    fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.bytes += piece.len();
            self.pieces.push_back(piece);
            self.wake_reader();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }
}

impl Wire for BodyWire {
    fn send(&self, block: &Block) {
        let mut queue = self.buffer.queue.lock();
        if !queue.is_over {
            queue.push(block.bytes().clone());
        }
    }

    /// Does nothing: `send` has already woken the reader.
    fn flush(&self) {}

    fn discard(&self) {
        let mut queue = self.buffer.queue.lock();
        queue.pieces.clear();
        queue.bytes = 0;
    }

    fn room(&self) -> usize {
        let queue = self.buffer.queue.lock();
        match queue.is_over {
            true => 0,
            false => self.buffer.bytes_max.saturating_sub(queue.bytes),
        }
    }

    fn queued_bytes(&self) -> usize {
        self.buffer.queue.lock().bytes
    }

    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.buffer.queue.lock();
        if queue.is_over || queue.bytes < self.buffer.bytes_max {
            return Poll::Ready(());
        }
        queue.writer = Some(cx.waker().clone());
        Poll::Pending
    }

    fn close(&self, disconnect: &Disconnect) {
        let mut queue = self.buffer.queue.lock();
        if queue.is_over {
            return;
        }
        if let Some(last) = (self.farewell)(disconnect) {
            queue.push(last);
        }
        queue.is_over = true;
        queue.wake_reader();
    }
}

impl Drop for BodyWire {
    fn drop(&mut self) {
        let mut queue = self.buffer.queue.lock();
        queue.is_over = true;
        queue.wake_reader();
    }
}

impl fmt::Debug for BodyWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWire")
            .field("queued_bytes", &self.queued_bytes())
            .finish_non_exhaustive()
    }
}

impl BodyStream {
    /// Returns the response that streams the body.
    pub(crate) fn into_response(self, content_type: &'static str) -> Response {
        head(content_type).map(|_| Body::from_stream(self))
    }
}

/// Returns the response to a request for a stream, without its body.
pub(super) fn head(content_type: &'static str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, "no-store, no-transform"),
        // Otherwise nginx would buffer the response.
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, Body::empty()).into_response()
}

impl Stream for BodyStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = self.buffer.queue.lock();
        if let Some(piece) = queue.pieces.pop_front() {
            queue.bytes -= piece.len();
            if queue.bytes < self.buffer.bytes_max {
                queue.wake_writer();
            }
            return Poll::Ready(Some(Ok(piece)));
        }
        if queue.is_over {
            return Poll::Ready(None);
        }
        queue.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for BodyStream {
    fn drop(&mut self) {
        let mut queue = self.buffer.queue.lock();
        queue.is_over = true;
        queue.pieces.clear();
        queue.bytes = 0;
        queue.wake_writer();
        drop(queue);
        drop(self.guard.take());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use futures_util::{FutureExt, StreamExt};

    use super::*;

    fn last_words(disconnect: &Disconnect) -> Option<Bytes> {
        Some(disconnect.reason.to_string().into())
    }

    async fn next(stream: &mut BodyStream) -> Option<Bytes> {
        stream.next().await.map(|Ok(piece)| piece)
    }

    #[tokio::test]
    async fn pieces_arrive_in_order_and_the_farewell_is_the_last() {
        let (wire, mut stream) = body(10, last_words, ());
        assert_eq!(next(&mut stream).now_or_never(), None);
        wire.send(&Block::new("one", 1));
        wire.send(&Block::new(Bytes::new(), 1));
        wire.send(&Block::new("two", 1));
        wire.close(&Disconnect::SHUTDOWN);
        wire.send(&Block::new("late", 1));
        for expected in ["one", "two", "shutdown"] {
            assert_eq!(
                next(&mut stream).await.as_deref(),
                Some(expected.as_bytes())
            );
        }
        assert_eq!(next(&mut stream).await, None);
    }

    #[tokio::test]
    async fn a_full_body_has_room_again_once_it_is_read() {
        let (wire, mut stream) = body(10, |_| None, ());
        assert_eq!(wire.room(), 10);
        wire.send(&Block::new(vec![b'x'; 9], 1));
        assert_eq!(wire.room(), 1);
        wire.send(&Block::new(vec![b'x'; 100], 1));
        assert_eq!((wire.room(), wire.queued_bytes()), (0, 109));
        let mut room = std::pin::pin!(poll_fn(|cx| wire.poll_room(cx)));
        assert_eq!((&mut room).now_or_never(), None);
        next(&mut stream).await;
        assert_eq!((&mut room).now_or_never(), None);
        next(&mut stream).await;
        room.await;
        assert_eq!(wire.room(), 10);
    }

    #[tokio::test]
    async fn a_body_that_nobody_reads_any_more_takes_nothing_and_drops_its_guard() {
        let guard = Arc::new(());
        let (wire, stream) = body(10, |_| None, guard.clone());
        wire.send(&Block::new(vec![b'x'; 100], 1));
        drop(stream);
        assert_eq!(Arc::strong_count(&guard), 1);
        poll_fn(|cx| wire.poll_room(cx)).await;
        wire.send(&Block::new("late", 1));
        assert_eq!((wire.room(), wire.queued_bytes()), (0, 0));
    }

    #[tokio::test]
    async fn a_dropped_wire_ends_the_body() {
        let (wire, mut stream) = body(10, last_words, ());
        wire.send(&Block::new("one", 1));
        drop(wire);
        assert_eq!(next(&mut stream).await.as_deref(), Some(&b"one"[..]));
        assert_eq!(next(&mut stream).await, None);
    }
}
