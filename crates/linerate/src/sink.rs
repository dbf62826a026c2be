//! `Stream` and `Sink` implementations for [`WebSocket`].

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_core::Stream;
use futures_sink::Sink;
use linerate_proto::CloseCode;

use crate::{Error, Message, Result, WebSocket, link::Urgency};

impl Stream for WebSocket {
    type Item = Result<Message>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.link.poll_next(cx).map(Result::transpose)
    }
}

impl Sink<Message> for WebSocket {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_queue(cx, Urgency::Gather, |_, _| Ok(0))
    }

    fn start_send(self: Pin<&mut Self>, message: Message) -> Result<()> {
        self.link.queue(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.start_close(CloseCode::NORMAL, "")?;
        self.link.poll_closed(cx).map(|_| Ok(()))
    }
}
