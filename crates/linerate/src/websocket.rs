//! A connection, as an application holds it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use linerate_proto::{
    CloseCode,
    engine::{Closed, MessageKind, State},
};

use crate::{
    Message, Parts, PartsError, Result,
    link::{Link, Mode, Urgency},
    split::{Receiver, Sender},
    streaming::{Reader, Writer},
};

/// An open WebSocket connection, of either role, over any transport.
///
/// Dropping it starts a closing handshake in the background. Implements `Stream` and `Sink` of
/// [`Message`]s.
pub struct WebSocket {
    pub(crate) link: Arc<Link>,
}

impl WebSocket {
    /// Takes the first handle of `link`.
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// Receives the next message; `None` after the peer's Close frame.
    ///
    /// # Errors
    /// The peer broke the protocol, went silent, or the stream ended without a closing handshake.
    /// The error is told once; then comes `None`.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call goes on where it was.
    pub fn recv(
        &mut self,
    ) -> impl Future<Output = Result<Option<Message>>> + std::marker::Send + '_ {
        Recv::new(&self.link)
    }

    /// Sends a message; ready when it is queued and there is room for another.
    ///
    /// What is queued is written without further calls, at the latest when the task yields. Waits
    /// while more than [`send_queue_bytes_max`](crate::Options::send_queue_bytes_max) bytes are
    /// queued.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing of the message.
    pub fn send(
        &mut self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<()>> + std::marker::Send + '_ {
        Send::<false>::new(&self.link, message.into())
    }

    /// Sends a message that is never compressed, as [`send`](Self::send) does otherwise: for what is
    /// secret and stands beside what others can choose (RFC 7692 §8), and for what is compressed
    /// already.
    ///
    /// # Errors
    /// As [`send`](Self::send), whose cancel safety it shares.
    pub async fn send_uncompressed(&mut self, message: impl Into<Message>) -> Result<()> {
        send_uncompressed(&self.link, Urgency::Now, message.into()).await
    }

    /// Sends a text message, copying it straight behind its frame header.
    ///
    /// # Errors
    /// As [`send`](Self::send), whose cancel safety it shares.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        self.send_copy(MessageKind::Text, text.as_bytes()).await
    }

    /// Sends a binary message, copying it straight behind its frame header.
    ///
    /// # Errors
    /// As [`send`](Self::send), whose cancel safety it shares.
    pub async fn send_binary(&mut self, bytes: &[u8]) -> Result<()> {
        self.send_copy(MessageKind::Binary, bytes).await
    }

    /// Sends a Ping; its Pong is taken note of, not received. Keepalive works without it.
    ///
    /// # Errors
    /// The connection is closing or closed, or `payload` has more than 125 bytes.
    ///
    /// # Cancel safety
    /// As [`send`](Self::send).
    pub async fn ping(&mut self, payload: &[u8]) -> Result<()> {
        std::future::poll_fn(|cx| {
            self.link.poll_queue(cx, Urgency::Now, |outbox, engine| {
                outbox.push_ping(engine, payload)?;
                Ok(0)
            })
        })
        .await
    }

    /// Writes everything that was sent to the socket.
    ///
    /// # Errors
    /// The connection was lost before that.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; the rest is written in the background.
    pub async fn flush(&mut self) -> Result<()> {
        std::future::poll_fn(|cx| self.link.poll_flush(cx)).await
    }

    /// Closes the connection: sends what is queued and a Close frame, and waits for the peer's,
    /// within the budget of [`close_timeout`](crate::Config::close_timeout).
    ///
    /// Returns how it ended; `clean` is `false` if the peer did not answer in time. Messages that
    /// arrive meanwhile can still be received afterwards, as far as
    /// [`recv_queue_bytes_max`](crate::Options::recv_queue_bytes_max) allows.
    ///
    /// # Errors
    /// `reason` has more than 123 bytes.
    ///
    /// # Cancel safety
    /// Dropping the future lets the closing handshake go on in the background.
    pub async fn close(&mut self, code: CloseCode, reason: &str) -> Result<Closed> {
        self.link.start_close(code, reason)?;
        Ok(std::future::poll_fn(|cx| self.link.poll_closed(cx)).await)
    }

    /// Starts to receive the next message piece by piece, in constant memory; `None` after the
    /// peer's Close frame.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), whose cancel safety it shares.
    pub async fn reader(&mut self) -> Result<Option<Reader<'_>>> {
        Reader::start(&self.link).await
    }

    /// Starts to send a message piece by piece, each as a fragment.
    pub fn writer(&mut self, kind: MessageKind) -> Writer<'_> {
        Writer::new(&self.link, kind)
    }

    /// Splits into halves that tasks of their own may hold; the sending half can be cloned.
    pub fn split(self) -> (Sender, Receiver) {
        // Each half takes a handle of its own; `self` gives its up.
        (
            Sender::new(self.link.clone()),
            Receiver::new(self.link.clone()),
        )
    }

    /// Takes the connection apart: the stream, what has arrived and was not received, what was sent and
    /// not written.
    ///
    /// # Errors
    /// The connection is closing or closed, a message was begun and not ended, or messages may be
    /// compressed. The connection comes back with the error, as it was.
    #[allow(
        clippy::result_large_err,
        reason = "the error is what the caller had before"
    )]
    pub fn into_parts(self) -> Result<Parts, (Self, PartsError)> {
        let taken = self.link.take_parts();
        taken.map_err(|error| (self, error))
    }

    /// Returns the subprotocol that the opening handshake agreed on.
    pub fn subprotocol(&self) -> Option<String> {
        self.link.lock().subprotocol().map(Into::into)
    }

    /// Returns how messages of this side are compressed, `None` if they are not.
    #[cfg(feature = "deflate")]
    pub fn deflates(&self) -> Option<linerate_proto::deflate::Context> {
        self.link.lock().engine().deflates()
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        self.link.lock().engine().state()
    }

    /// Returns how the connection ended and the reason that the peer gave, once it has: after
    /// [`recv`](Self::recv) returned `None`, [`close`](Self::close) waits for that.
    pub fn closed(&self) -> Option<(Closed, String)> {
        self.link
            .lock()
            .closed()
            .map(|(closed, reason)| (closed, reason.into()))
    }

    /// Returns the round-trip time of the newest keepalive Ping.
    pub fn latency(&self) -> Option<Duration> {
        self.link.lock().engine().latency()
    }

    async fn send_copy(&mut self, kind: MessageKind, payload: &[u8]) -> Result<()> {
        std::future::poll_fn(|cx| {
            self.link.poll_queue(cx, Urgency::Now, |outbox, engine| {
                outbox.push_copy(engine, kind, payload)?;
                Ok(1)
            })
        })
        .await
    }
}

impl Drop for WebSocket {
    fn drop(&mut self) {
        self.link.drop_handle(false);
    }
}

impl std::fmt::Debug for WebSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebSocket")
            .field("state", &self.state())
            .finish_non_exhaustive()
    }
}

/// Queues a message; with `GATHER` it may wait for others to be written with it.
///
/// Small, because it is part of every handler's future.
pub(crate) struct Send<'a, const GATHER: bool> {
    link: &'a Link,
    message: Option<Message>,
}

impl<'a, const GATHER: bool> Send<'a, GATHER> {
    pub(crate) fn new(link: &'a Link, message: Message) -> Self {
        Self {
            link,
            message: Some(message),
        }
    }
}

impl<const GATHER: bool> Future for Send<'_, GATHER> {
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

/// Queues a message that is never compressed.
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

/// Receives one message; takes itself off the link when it is dropped while it waits.
pub(crate) struct Recv<'a> {
    link: &'a Link,
    waits: bool,
}

impl<'a> Recv<'a> {
    pub(crate) fn new(link: &'a Link) -> Self {
        Self { link, waits: false }
    }
}

impl Future for Recv<'_> {
    type Output = Result<Option<Message>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waits = true;
        let received = ready!(self.link.poll_receive(cx, Mode::Messages));
        self.waits = false;
        Poll::Ready(received.map(|piece| piece.map(|piece| piece.message)))
    }
}

impl Drop for Recv<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.link.cancel_receive();
        }
    }
}
