//! Response bodies that keep a slot among the connections.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::ConnectionGuard;

/// A response body that holds the slots of its request until it ends or is dropped.
#[derive(Debug)]
pub(super) struct GuardedBody {
    body: Body,
    _guard: ConnectionGuard,
}

impl GuardedBody {
    pub(super) fn new(body: Body, guard: ConnectionGuard) -> Self {
        Self {
            body,
            _guard: guard,
        }
    }
}

impl HttpBody for GuardedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
