//! Bodies of requests that do not open a WebSocket.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use crate::stream::into_io;

/// The body of a request over HTTP/2. Reading it allows the client to send more.
#[derive(Debug)]
pub struct RequestBody {
    /// `None` for a CONNECT request, whose stream is not a body.
    recv: Option<RecvStream>,
    /// The bytes left according to `Content-Length`, whose value h2 verifies.
    left: Option<u64>,
    is_data_over: bool,
    /// Receives the unread part of the body.
    rest: Option<oneshot::Sender<RecvStream>>,
}

impl RequestBody {
    /// Creates a body. If part of it is unread when it is dropped, the receiver gets that part.
    pub(crate) fn new(
        recv: RecvStream,
        length: Option<u64>,
    ) -> (Self, oneshot::Receiver<RecvStream>) {
        let (rest, unread) = oneshot::channel();
        let body = Self {
            recv: Some(recv),
            left: length,
            is_data_over: false,
            rest: Some(rest),
        };
        (body, unread)
    }

    pub(crate) const fn empty() -> Self {
        Self {
            recv: None,
            left: Some(0),
            is_data_over: true,
            rest: None,
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let Some(recv) = &mut this.recv else {
            return Poll::Ready(None);
        };
        if !this.is_data_over {
            match ready!(recv.poll_data(cx)) {
                Some(Ok(data)) => {
                    // This fails if the stream has ended; its window no longer matters then.
                    _ = recv.flow_control().release_capacity(data.len());
                    this.left = this.left.map(|left| left.saturating_sub(data.len() as u64));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(into_io(error)))),
                None => this.is_data_over = true,
            }
        }
        let trailers = ready!(recv.poll_trailers(cx)).map_err(into_io)?;
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.recv.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.left
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let (Some(recv), Some(rest)) = (self.recv.take(), self.rest.take())
            && !recv.is_end_stream()
        {
            // The receiver is gone if the response has already been sent.
            _ = rest.send(recv);
        }
    }
}
