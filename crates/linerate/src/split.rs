//! The two halves of a connection, for use in separate tasks.

use std::{
    fmt,
    future::Future,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use linerate_proto::CloseCode;

use crate::{
    Closed, Frames, Message, Result, TrySendError,
    info::ConnectionInfo,
    link::{self, Link, Recv, Urgency},
    streaming::Reader,
};

/// The sending half of a connection. Clones send over the same connection.
///
/// Messages sent by the same clone keep their order. The connection is closed when all senders and
/// the [`Receiver`] have been dropped.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}/", listener.local_addr()?);
/// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
/// #     while let Some(message) = ws.recv().await? {
/// #         ws.send(message).await?;
/// #     }
/// #     Ok(())
/// # }, std::future::pending()));
/// let (sender, mut receiver) = linerate::connect(&url).await?.split(); // an echo server
/// for name in ["one", "two"] {
///     let sender = sender.clone();
///     tokio::spawn(async move { sender.send(name).await });
/// }
/// for _ in 0..2 {
///     println!("{:?}", receiver.recv().await?);
/// }
/// # Ok(())
/// # }
/// ```
pub struct Sender {
    pub(crate) link: Arc<Link>,
}

/// The receiving half of a connection.
///
/// After it is dropped, incoming messages are discarded, but control frames are still answered.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> linerate::Result<()> {
/// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// # let url = format!("ws://{}/", listener.local_addr()?);
/// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
/// #     while let Some(message) = ws.recv().await? {
/// #         ws.send(message).await?;
/// #     }
/// #     Ok(())
/// # }, std::future::pending()));
/// let (sender, mut receiver) = linerate::connect(&url).await?.split(); // an echo server
/// let received = tokio::spawn(async move { receiver.recv().await });
/// sender.send("Spam").await?;
/// let message = received.await.expect("the task does not panic")?;
/// assert_eq!(message, Some("Spam".into()));
/// # Ok(())
/// # }
/// ```
pub struct Receiver {
    link: Arc<Link>,
}

impl Sender {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.add_handle();
        Self { link }
    }

    /// Sends a message; waits until there is room in the send queue, and completes when the message
    /// is queued.
    ///
    /// Messages that several senders queue before the connection's task runs are written together.
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends no part of the message.
    pub fn send(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<()>> + Send + '_ {
        link::SendMessage::<true>::new(&self.link, message.into())
    }

    /// Sends a message without compressing it, like
    /// [`WebSocket::send_uncompressed`](crate::WebSocket::send_uncompressed).
    ///
    /// # Errors
    /// Same as for [`send`](Self::send), which also describes the cancel safety.
    pub async fn send_uncompressed(&self, message: impl Into<Message>) -> Result<()> {
        link::send_uncompressed(&self.link, Urgency::Gather, message.into()).await
    }

    /// Sends a Ping, like [`WebSocket::ping`](crate::WebSocket::ping).
    ///
    /// # Errors
    /// The connection is closing or closed, or `payload` is longer than 125 bytes.
    ///
    /// # Cancel safety
    /// Same as for [`send`](Self::send).
    pub async fn ping(&self, payload: &[u8]) -> Result<()> {
        link::send_ping(&self.link, payload).await
    }

    /// Sends a Ping and waits for the Pong with the same payload; returns the time in between.
    ///
    /// The Pong is read after the messages that arrived before it. If nothing receives these, and
    /// they exceed [`recv_queue_bytes_max`](crate::Options::recv_queue_bytes_max), this does not
    /// complete. A Pong also completes the round trips of earlier Pings, because a peer may answer
    /// only the newest one (RFC 6455 §5.5.3). There is no deadline; use the runtime's.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> linerate::Result<()> {
    /// # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// # let url = format!("ws://{}/", listener.local_addr()?);
    /// # tokio::spawn(linerate::serve(listener, |mut ws, _request| async move {
    /// #     while ws.recv().await?.is_some() {}
    /// #     Ok(())
    /// # }, std::future::pending()));
    /// let (sender, _receiver) = linerate::connect(&url).await?.split();
    /// println!("round trip: {:?}", sender.round_trip(b"are you there?").await?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The connection is closing or closed, or it ends before the Pong arrives, or `payload` is
    /// longer than 125 bytes.
    ///
    /// # Cancel safety
    /// Dropping the future sends the whole Ping or no part of it; its Pong is then ignored.
    pub async fn round_trip(&self, payload: &[u8]) -> Result<Duration> {
        link::round_trip(&self.link, payload).await
    }

    /// Sends shared frames without waiting: either all of them or none.
    ///
    /// The frames keep their order relative to messages sent with other methods. This call writes
    /// as much as the socket accepts, unless received input is still waiting to be processed; the
    /// rest is written in the background. As long as there is [`room`](Self::room), frames of any
    /// length are accepted. A client sends masked copies (RFC 6455 §5.1), so it does not share the
    /// bytes.
    ///
    /// # Errors
    /// There is no room (see [`send_queue_bytes_max`](crate::Options::send_queue_bytes_max)), the
    /// connection is closing or closed, or a message is being sent in fragments.
    pub fn try_send_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f Frames>,
    ) -> Result<(), TrySendError> {
        self.link.try_queue_frames(frames)?;
        self.link.try_flush();
        Ok(())
    }

    /// Queues shared frames, either all of them or none, for [`try_flush`](Self::try_flush) to
    /// write together with others.
    ///
    /// Otherwise this works like [`try_send_frames`](Self::try_send_frames). Without a flush, the
    /// frames are written the next time that anything else is written.
    ///
    /// # Errors
    /// Same as for [`try_send_frames`](Self::try_send_frames).
    pub fn try_feed_frames<'f>(
        &self,
        frames: impl IntoIterator<Item = &'f Frames>,
    ) -> Result<(), TrySendError> {
        self.link.try_queue_frames(frames)
    }

    /// Writes as much of the queue as the socket accepts, unless received input is still waiting to
    /// be processed; the rest is written in the background.
    pub fn try_flush(&self) {
        self.link.try_flush();
    }

    /// Returns how this side compresses its messages, or `None` if it does not compress them.
    #[cfg(feature = "deflate")]
    pub fn compression(&self) -> Option<linerate_proto::deflate::Context> {
        self.link.lock().engine().compression()
    }

    /// Returns what is known about the connection: addresses, HTTP version and TLS. `None` once the
    /// connection is over.
    pub fn info(&self) -> Option<ConnectionInfo> {
        self.link.info()
    }

    /// Returns how many bytes can be sent before sending has to wait; 0 once nothing more can be
    /// sent.
    pub fn room(&self) -> usize {
        self.link.room()
    }

    /// Returns how many bytes are queued for the socket.
    pub fn queued_bytes(&self) -> usize {
        self.link.queued_bytes()
    }

    /// Returns how many bytes of memory hold received input: unparsed bytes, incomplete messages,
    /// and messages that are waiting for the [`Receiver`].
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

    /// Like [`writable`](Self::writable), for use in hand-written futures.
    ///
    /// # Errors
    /// Same as for [`writable`](Self::writable).
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.link.poll_room(cx)
    }

    /// Discards queued frames of which no part has been written.
    ///
    /// Use this to close a connection whose send queue has grown too long. Only a Close frame
    /// should be sent afterwards.
    pub fn discard_unsent(&self) {
        self.link.discard_unsent();
    }

    /// Sends a Close frame after everything that is queued, without waiting for the peer's.
    ///
    /// # Errors
    /// `reason` is longer than 123 bytes.
    pub fn start_close(&self, code: CloseCode, reason: &str) -> Result<()> {
        self.link.start_close(code, reason)
    }

    /// Writes all queued messages to the socket.
    ///
    /// # Errors
    /// The connection was lost before everything was written.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; the remaining bytes are written in the background.
    pub async fn flush(&self) -> Result<()> {
        std::future::poll_fn(|cx| self.link.poll_flush(cx)).await
    }

    /// Closes the connection, like [`WebSocket::close`](crate::WebSocket::close).
    ///
    /// # Errors
    /// `reason` is longer than 123 bytes.
    pub async fn close(&self, code: CloseCode, reason: &str) -> Result<Closed> {
        self.link.start_close(code, reason)?;
        Ok(std::future::poll_fn(|cx| self.link.poll_closed(cx)).await)
    }

    /// Returns how the connection ended, like
    /// [`WebSocket::closed`](crate::WebSocket::closed).
    pub fn closed(&self) -> Option<Closed> {
        self.link.lock().closed()
    }
}

impl Receiver {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        link.add_handle();
        Self { link }
    }

    /// Receives the next message, like [`WebSocket::recv`](crate::WebSocket::recv).
    ///
    /// # Errors
    /// The peer violated the protocol or went silent, or the stream ended without a closing
    /// handshake.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub fn recv(&mut self) -> impl Future<Output = Result<Option<Message>>> + Send + '_ {
        Recv::new(&self.link)
    }

    /// Starts receiving the next message in chunks, like
    /// [`WebSocket::reader`](crate::WebSocket::reader).
    ///
    /// # Errors
    /// Same as for [`recv`](Self::recv), which also describes the cancel safety.
    pub async fn reader(&mut self) -> Result<Option<Reader<'_>>> {
        Reader::start(&self.link).await
    }

    /// Starts receiving the next message in chunks with another limit, like
    /// [`WebSocket::reader_with_limit`](crate::WebSocket::reader_with_limit).
    ///
    /// # Errors
    /// Same as for [`WebSocket::reader_with_limit`](crate::WebSocket::reader_with_limit).
    pub async fn reader_with_limit(
        &mut self,
        bytes_max: Option<u64>,
    ) -> Result<Option<Reader<'_>>> {
        Reader::start_with(&self.link, bytes_max.unwrap_or(u64::MAX)).await
    }

    /// Returns what is known about the connection: addresses, HTTP version and TLS. `None` once the
    /// connection is over.
    pub fn info(&self) -> Option<ConnectionInfo> {
        self.link.info()
    }

    /// Returns how the connection ended, like
    /// [`WebSocket::closed`](crate::WebSocket::closed).
    pub fn closed(&self) -> Option<Closed> {
        self.link.lock().closed()
    }

    /// Returns the round-trip time of the most recent keepalive Ping.
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
