//! Response bodies that keep a place among the connections.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};

use super::Visit;

/// A response body that holds the places of its request until it ends or is dropped.
#[derive(Debug)]
pub(super) struct Staying {
    body: Body,
    _visit: Visit,
}

impl Staying {
    pub(super) fn new(body: Body, visit: Visit) -> Self {
        Self {
            body,
            _visit: visit,
        }
    }
}

impl HttpBody for Staying {
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
