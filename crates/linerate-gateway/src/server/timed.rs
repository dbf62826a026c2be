//! Bodies of requests that must come in time, and are counted in the memory budget.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use axum::body::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use linerate_budget::{Account, Share};
use tokio::time::{Sleep, sleep};

/// How long the whole body of a request may take.
pub(crate) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// What is counted of a request's body, until the request is answered.
#[derive(Clone, Debug)]
pub(super) struct Held(Arc<Mutex<Share>>);

impl Held {
    pub(super) fn new(account: &Account) -> Self {
        Self(Arc::new(Mutex::new(account.share(0))))
    }

    fn add(&self, bytes: usize) {
        let mut share = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held = share.bytes();
        // Once as it arrives, once more where it is put together.
        share.set(held + 2 * bytes as u64);
    }
}

/// The body of a request. It fails when its time is over, however much of it has come.
#[derive(Debug)]
pub(super) struct Timed<B> {
    body: B,
    held: Held,
    over: Pin<Box<Sleep>>,
}

impl<B> Timed<B> {
    pub(super) fn new(body: B, held: Held) -> Self {
        Self {
            body,
            held,
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
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.held.add(frame.data_ref().map_or(0, Bytes::len));
        }
        frame.map_err(io::Error::other)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
