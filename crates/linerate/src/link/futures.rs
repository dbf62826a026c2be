//! The futures that receive and send messages.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use super::{Link, Mode, Received, Urgency, into_message, round_trips::PongMark};
use crate::{Batch, Message, Replies, Result, clock};

/// A future that receives one message; it unregisters from the link if it is dropped while waiting.
///
/// It is kept small because it is part of every handler's future.
pub(crate) struct Recv<'a> {
    link: &'a Link,
    waits: bool,
}

impl<'a> Recv<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        Self { link, waits: false }
    }

    /// Receives all messages that have arrived.
    pub(crate) fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Received<Batch>> {
        let received = self.link.poll_receive_batch(cx);
        self.waits = received.is_pending();
        received
    }

    /// Receives the next message or, with other modes, a part of one.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>, mode: Mode) -> Poll<Received> {
        let received = self.link.poll_receive(cx, mode);
        self.waits = received.is_pending();
        received
    }
}

impl Future for Recv<'_> {
    type Output = Result<Option<Message>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_chunk(cx, Mode::Messages).map(into_message)
    }
}

impl Drop for Recv<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.link.cancel_receive();
        }
    }
}

/// A future that queues a message; with `GATHER`, the message may wait to be written together with
/// others.
///
/// It is kept small because it is part of every handler's future.
pub(crate) struct SendMessage<'a, const GATHER: bool> {
    link: &'a Link,
    message: Option<Message>,
}

impl<'a, const GATHER: bool> SendMessage<'a, GATHER> {
    pub(crate) fn new(link: &'a Link, message: Message) -> Self {
        Self {
            link,
            message: Some(message),
        }
    }
}

impl<const GATHER: bool> Future for SendMessage<'_, GATHER> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let urgency = if GATHER {
            Urgency::Gather
        } else {
            Urgency::Now
        };
        let link = self.link;
        link.poll_queue(cx, urgency, |outbox, engine| match self.message.take() {
            Some(message) => outbox.push(engine, message).map(|()| 1),
            None => Ok(0),
        })
    }
}

/// Receives all messages that have arrived, at least one.
pub(crate) async fn recv_batch(link: &Link) -> Result<Option<Batch>> {
    let mut receiving = Recv::new(link);
    let received = std::future::poll_fn(|cx| receiving.poll_batch(cx)).await;
    received.map_err(|error| *error)
}

/// Queues replies.
pub(crate) async fn send_replies(link: &Link, replies: &mut Replies) -> Result<()> {
    if replies.is_empty() {
        return Ok(());
    }
    std::future::poll_fn(|cx| {
        link.poll_queue(cx, Urgency::Now, |outbox, engine| {
            outbox.push_replies(engine, replies)
        })
    })
    .await
}

/// Queues a message without compressing it.
pub(crate) async fn send_uncompressed(
    link: &Link,
    urgency: Urgency,
    message: Message,
) -> Result<()> {
    let mut message = Some(message);
    std::future::poll_fn(|cx| {
        link.poll_queue(cx, urgency, |outbox, engine| match message.take() {
            Some(message) => outbox.push_uncompressed(engine, message).map(|()| 1),
            None => Ok(0),
        })
    })
    .await
}

/// Sends a Ping.
pub(crate) async fn send_ping(link: &Link, payload: &[u8]) -> Result<()> {
    std::future::poll_fn(|cx| {
        link.poll_queue(cx, Urgency::Now, |outbox, engine| {
            outbox.push_ping(engine, payload)?;
            Ok(0)
        })
    })
    .await
}

/// Sends a Ping and waits for its Pong; returns the time in between.
pub(crate) async fn round_trip(link: &Link, payload: &[u8]) -> Result<Duration> {
    let mut expected = None;
    std::future::poll_fn(|cx| {
        link.poll_queue_with(cx, Urgency::Now, |connection| {
            connection
                .outbox
                .push_ping(&mut connection.engine, payload)?;
            let mark = PongMark::of(payload);
            let answer = connection.lazy_mut().round_trips.expect(mark);
            expected = Some((answer, clock::now()));
            Ok(0)
        })
    })
    .await?;
    let (answer, sent) = expected.expect("the Ping was queued");
    match answer.await {
        Ok(answered) => Ok(answered.saturating_sub(sent)),
        Err(_) => Err(link.lock().not_open()),
    }
}
