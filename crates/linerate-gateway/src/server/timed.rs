//! Bodies of requests that must come in time.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// How long the whole body of a request may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The body of a request. It fails when its time is over, however much of it has come.
#[derive(Debug)]
pub(super) struct Timed<B> {
    body: B,
    over: Pin<Box<Sleep>>,
}

impl<B> Timed<B> {
    pub(super) fn new(body: B) -> Self {
        Self {
            body,
            over: Box::pin(sleep(BODY_TIMEOUT)),
        }
    }
}

impl<B> Body for Timed<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.over.as_mut().poll(context).is_ready() {
            let message = format!("body took more than {BODY_TIMEOUT:?}");
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, message))));
        }
        let frame = Pin::new(&mut self.body).poll_frame(context);
        frame.map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
