//! The two halves of a connection, for tasks of their own.

use std::{
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use linerate_proto::{CloseCode, engine::Closed};

use crate::{
    Frames, Message, Result, TrySendError,
    link::{Link, Urgency},
    streaming::Reader,
    websocket::{self, Recv},
};

/// The sending half of a connection; clones send over the same connection.
///
/// Messages of one clone keep their order. The connection is closed when all senders and the
/// [`Receiver`] are dropped.
pub struct Sender {
    link: Arc<Link>,
}

/// The receiving half of a connection.
///
/// When it is dropped, messages that arrive are discarded, and control frames are still answered.
pub struct Receiver {
    link: Arc<Link>,
}

impl Sender {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.add_handle();
        Self { link }
    }

    /// Sends a message; ready when it is queued and there is room for another.
    ///
    /// The messages that any number of senders queue before the connection's task runs are written
    /// together.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready sends nothing of the message.
    pub fn send(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<()>> + Send + '_ {
        websocket::Send::<true>::new(&self.link, message.into())
    }

    /// Sends a message that is never compressed, as
    /// [`WebSocket::send_uncompressed`](crate::WebSocket::send_uncompressed) does.
    ///
    /// # Errors
    /// As [`send`](Self::send), whose cancel safety it shares.
    pub async fn send_uncompressed(&self, message: impl Into<Message>) -> Result<()> {
        websocket::send_uncompressed(&self.link, Urgency::Gather, message.into()).await
    }

    /// Sends frames that other connections send too, all of them or none, and does not wait.
    ///
    /// They keep their order with messages that were sent otherwise. What the socket takes is written in this
    /// call, unless input waits to be answered; the rest is written in the background. While there is
    /// [`room`](Self::room) they are accepted whatever their length. A client sends masked copies (RFC 6455
    /// §5.1), so nothing is shared there.
    ///
    /// # Errors
    /// There is no room, see [`send_queue_bytes_max`](crate::Options::send_queue_bytes_max); the connection is
    /// closing or closed; or a message is being sent in fragments.
    pub fn try_send_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f Frames>,
    ) -> Result<(), TrySendError> {
        self.link.try_queue_frames(frames)?;
        self.link.try_flush();
        Ok(())
    }

    /// Queues frames that other connections send too, all of them or none, to be written by
    /// [`try_flush`](Self::try_flush) together with others.
    ///
    /// As [`try_send_frames`](Self::try_send_frames) otherwise. What nobody flushes goes out whenever something else
    /// is written.
    ///
    /// # Errors
    /// As [`try_send_frames`](Self::try_send_frames).
    pub fn try_feed_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f Frames>,
    ) -> Result<(), TrySendError> {
        self.link.try_queue_frames(frames)
    }

    /// Writes what is queued as far as the socket takes it, unless input waits to be answered; the rest is written
    /// in the background.
    pub fn try_flush(&self) {
        self.link.try_flush();
    }

    /// Returns how messages of this side are compressed, `None` if they are not.
    #[cfg(feature = "deflate")]
    pub fn deflates(&self) -> Option<linerate_proto::deflate::Context> {
        self.link.lock().engine().deflates()
    }

    /// Returns how many bytes may be sent before sending has to wait; 0 once nothing can be sent.
    pub fn room(&self) -> usize {
        self.link.room()
    }

    /// Returns how many bytes wait for the socket.
    pub fn queued_bytes(&self) -> usize {
        self.link.queued_bytes()
    }

    /// Returns the memory of input that was received and not taken: unparsed bytes, messages that are not whole, and
    /// those that wait for the [`Receiver`].
    pub fn received_bytes(&self) -> usize {
        self.link.received_bytes()
    }

    /// Waits until there is room to send.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn writable(&self) -> Result<()> {
        std::future::poll_fn(|cx| self.poll_writable(cx)).await
    }

    /// As [`writable`](Self::writable), for futures that are written by hand.
    ///
    /// # Errors
    /// As [`writable`](Self::writable).
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_room(cx)
    }

    /// Forgets frames that were accepted and of which nothing is written yet: for a connection that is to be closed
    /// because too much waits for it. Only a Close frame makes sense behind it.
    pub fn discard_unsent(&self) {
        self.link.discard_unsent();
    }

    /// Sends a Close frame behind everything that was sent, and does not wait for the peer's.
    ///
    /// # Errors
    /// `reason` has more than 123 bytes.
    pub fn start_close(&self, code: CloseCode, reason: &str) -> Result<()> {
        self.link.start_close(code, reason)
    }

    /// Writes everything that was sent to the socket.
    ///
    /// # Errors
    /// The connection was lost before that.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; the rest is written in the background.
    pub async fn flush(&self) -> Result<()> {
        std::future::poll_fn(|cx| self.link.poll_flush(cx)).await
    }

    /// Closes the connection, as [`WebSocket::close`](crate::WebSocket::close) does.
    ///
    /// # Errors
    /// `reason` has more than 123 bytes.
    pub async fn close(&self, code: CloseCode, reason: &str) -> Result<Closed> {
        self.link.start_close(code, reason)?;
        Ok(std::future::poll_fn(|cx| self.link.poll_closed(cx)).await)
    }
}

impl Receiver {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.add_handle();
        Self { link }
    }

    /// Receives the next message, as [`WebSocket::recv`](crate::WebSocket::recv) does.
    ///
    /// # Errors
    /// The peer broke the protocol, went silent, or the stream ended without a closing handshake.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub fn recv(&mut self) -> impl Future<Output = Result<Option<Message>>> + Send + '_ {
        Recv::new(&self.link)
    }

    /// Starts to receive the next message piece by piece, as
    /// [`WebSocket::reader`](crate::WebSocket::reader) does.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), whose cancel safety it shares.
    pub async fn reader(&mut self) -> Result<Option<Reader<'_>>> {
        Reader::start(&self.link).await
    }

    /// Returns how the connection ended and the reason that the peer gave, once it has.
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
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        Self::new(self.link.clone())
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.link.drop_handle(false);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.link.drop_handle(true);
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
