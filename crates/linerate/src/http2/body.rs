//! Bodies of requests that are no WebSockets.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use h2::RecvStream;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::oneshot;

use super::stream::into_io;

/// The body of a request over HTTP/2. The client may send more as it is taken.
#[derive(Debug)]
pub struct RequestBody {
    /// There is none for a CONNECT, whose stream is no body.
    recv: Option<RecvStream>,
    /// What `Content-Length` says is left; h2 sees to it that it tells the truth.
    left: Option<u64>,
    is_data_over: bool,
    /// Takes what nobody has read.
    rest: Option<oneshot::Sender<RecvStream>>,
}

impl RequestBody {
    /// Creates one; what is left of it when it is dropped goes to the receiver.
    pub(super) fn new(
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

    pub(super) const fn empty() -> Self {
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
                    // It fails for a stream that is over, whose window nobody needs.
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
            // It comes back if the response has been sent.
            _ = rest.send(recv);
        }
    }
}
