//! The application's handle to a connection.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use linerate_proto::{
    CloseCode,
    engine::{MessageKind, State},
};

use crate::{
    Batch, Closed, Message, MessageCow, Options, Replies, Result,
    info::ConnectionInfo,
    link::{
        Driver, ForEach, Link, Recv, SendMessage, Urgency, recv_batch, send_ping, send_replies,
        send_uncompressed,
    },
    parts::{Parts, PartsError},
    runtime::{Runtime, RuntimeHandle},
    split::{Receiver, Sender},
    streaming::{Reader, Writer},
};

/// An open WebSocket connection, of either role, over any transport.
///
/// Dropping it starts a closing handshake in the background. It implements `Stream` and `Sink` for
/// [`Message`].
///
/// ```
/// use linerate::{CloseCode, Message};
///
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
/// let mut ws = linerate::connect(&url).await?; // an echo server
/// ws.send("Spam").await?;
/// assert_eq!(ws.recv().await?, Some(Message::from("Spam")));
///
/// let closed = ws.close(CloseCode::NORMAL, "that was all").await?;
/// assert_eq!((closed.code, closed.clean), (1000, true));
/// assert_eq!(ws.recv().await?, None);
/// # Ok(())
/// # }
/// ```
pub struct WebSocket {
    pub(crate) link: Arc<Link>,
}

impl WebSocket {
    /// Wraps the first handle to `link`.
    pub(crate) fn new(link: Arc<Link>) -> Self {
        Self { link }
    }

    /// Continues with a connection whose opening handshake something else has performed, for
    /// example a web framework or a proxy, or that was [taken apart](Self::into_parts).
    ///
    /// Must be called within a tokio runtime, where a task drives the connection.
    ///
    /// ```
    /// use linerate::{Options, Role, WebSocket, parts::Parts};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> linerate::Result<()> {
    /// let (ours, theirs) = tokio::io::duplex(4096);
    /// let mut server = WebSocket::from_parts(Parts::new(ours, Role::Server), Options::default());
    /// let mut parts = Parts::new(theirs, Role::Client);
    /// parts.unread = b"\x81\x04Spam".to_vec(); // read after the handshake, with its last bytes
    /// let mut client = WebSocket::from_parts(parts, Options::default());
    ///
    /// assert_eq!(client.recv().await?, Some("Spam".into()));
    /// client.send("Eggs").await?;
    /// assert_eq!(server.recv().await?, Some("Eggs".into()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_parts(parts: Parts, options: Options) -> Self {
        Self::from_parts_on(&RuntimeHandle::Tokio, parts, options)
    }

    /// Like [`from_parts`](Self::from_parts), on another [runtime](crate::runtime) than tokio.
    ///
    /// ```
    /// use linerate::{Options, Role, WebSocket, parts::Parts, runtime::Runtime};
    /// use tokio::io::DuplexStream;
    ///
    /// fn take_over(stream: DuplexStream, runtime: impl Runtime) -> WebSocket {
    ///     let parts = Parts::new(stream, Role::Server);
    ///     WebSocket::from_parts_with_runtime(parts, Options::default(), runtime)
    /// }
    /// ```
    pub fn from_parts_with_runtime(parts: Parts, options: Options, runtime: impl Runtime) -> Self {
        Self::from_parts_on(&RuntimeHandle::new(runtime), parts, options)
    }

    fn from_parts_on(runtime: &RuntimeHandle, parts: Parts, options: Options) -> Self {
        let link = Link::from_parts(parts, &options.into());
        let ws = Self::new(link.clone());
        runtime.spawn(Driver::without_handler(link, runtime));
        ws
    }

    /// Receives the next message, or `None` after the peer's Close frame.
    ///
    /// # Errors
    /// The peer violated the protocol or went silent, or the stream ended without a closing
    /// handshake. An error is returned once; after that, `recv` returns `None`.
    /// [`closed`](Self::closed) returns how the connection ended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call continues from the same point.
    pub fn recv(&mut self) -> impl Future<Output = Result<Option<Message>>> + Send + '_ {
        Recv::new(&self.link)
    }

    /// Receives all messages that have arrived, waiting for the first; returns `None` after the
    /// peer's Close frame.
    ///
    /// This is the fast way to receive many short messages: it takes one call for all messages of a
    /// read, and they lie in the buffer in which they arrived. Answer them with
    /// [`send_replies`](Self::send_replies). [`for_each`](Self::for_each) does both.
    ///
    /// # Errors
    /// Same as for [`recv`](Self::recv). Messages that arrived before the error are returned first.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing. Dropping the [`Batch`] discards the messages in it.
    pub async fn recv_batch(&mut self) -> Result<Option<Batch>> {
        recv_batch(&self.link).await
    }

    /// Sends all messages in `replies` and clears it; waits until there is room in the send queue.
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
    /// # let mut ws = linerate::connect(&url).await?;
    /// let mut replies = linerate::Replies::new();
    /// for number in 0..100 {
    ///     replies.push(number.to_string());
    /// }
    /// ws.send_replies(&mut replies).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The connection is closing or closed.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends nothing and leaves `replies` as it was.
    pub async fn send_replies(&mut self, replies: &mut Replies) -> Result<()> {
        send_replies(&self.link, replies).await
    }

    /// Passes each message to `on_message` and sends the replies that it adds, until the peer's
    /// Close frame.
    ///
    /// This is the fastest way to answer messages: neither messages nor replies are allocated or
    /// copied one by one, and many of them share one call of the system. `on_message` must not
    /// block. If the peer does not read its replies, no more messages are passed on once
    /// [`send_queue_bytes_max`](crate::Options::send_queue_bytes_max) bytes are waiting.
    ///
    /// ```
    /// # async fn f(listener: tokio::net::TcpListener) -> std::io::Result<()> {
    /// linerate::serve(listener, |mut ws, _request| async move {
    ///     ws.for_each(|message, replies| {
    ///         replies.push(message);
    ///         Ok(())
    ///     })
    ///     .await
    /// }, std::future::pending()).await
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as for [`recv`](Self::recv), or `on_message` failed, or the replies could not be sent
    /// because the connection is closing.
    ///
    /// # Cancel safety
    /// Dropping the future loses no message: those that were not passed on can still be received.
    /// Replies may be lost while the send queue is full.
    pub fn for_each<F>(&mut self, on_message: F) -> impl Future<Output = Result<()>> + Send
    where
        F: FnMut(MessageCow<'_>, &mut Replies) -> Result<()> + Send,
    {
        ForEach::new(&self.link, on_message)
    }

    /// Sends a message; waits until there is room in the send queue, and completes when the message
    /// is queued.
    ///
    /// Queued messages are written without further calls, at the latest when the task yields. There
    /// is room while fewer than [`send_queue_bytes_max`](crate::Options::send_queue_bytes_max)
    /// bytes are queued.
    ///
    /// # Errors
    /// The connection is closing or closed; [`recv`](Self::recv) and [`closed`](Self::closed)
    /// return why.
    ///
    /// # Cancel safety
    /// Dropping the future before it completes sends no part of the message.
    pub fn send(
        &mut self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<()>> + Send + '_ {
        SendMessage::<false>::new(&self.link, message.into())
    }

    /// Sends a message like [`send`](Self::send), but never compresses it.
    ///
    /// Use this for secrets that are sent together with text that an attacker can choose (RFC 7692
    /// §8), and for data that is compressed already.
    ///
    /// # Errors
    /// Same as for [`send`](Self::send), which also describes the cancel safety.
    pub async fn send_uncompressed(&mut self, message: impl Into<Message>) -> Result<()> {
        send_uncompressed(&self.link, Urgency::Now, message.into()).await
    }

    /// Sends a text message, copying the payload directly after its frame header.
    ///
    /// # Errors
    /// Same as for [`send`](Self::send), which also describes the cancel safety.
    pub async fn send_text(&mut self, text: &str) -> Result<()> {
        self.send_copy(MessageKind::Text, text.as_bytes()).await
    }

    /// Sends a binary message, copying the payload directly after its frame header.
    ///
    /// # Errors
    /// Same as for [`send`](Self::send), which also describes the cancel safety.
    pub async fn send_binary(&mut self, bytes: &[u8]) -> Result<()> {
        self.send_copy(MessageKind::Binary, bytes).await
    }

    /// Sends a Ping. The connection handles the Pong itself; [`recv`](Self::recv) does not return
    /// it.
    ///
    /// Keepalive does not depend on this method.
    ///
    /// # Errors
    /// The connection is closing or closed, or `payload` is longer than 125 bytes.
    ///
    /// # Cancel safety
    /// Same as for [`send`](Self::send).
    pub async fn ping(&mut self, payload: &[u8]) -> Result<()> {
        send_ping(&self.link, payload).await
    }

    /// Writes all queued messages to the socket.
    ///
    /// # Errors
    /// The connection was lost before everything was written.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing; the remaining bytes are written in the background.
    pub async fn flush(&mut self) -> Result<()> {
        std::future::poll_fn(|cx| self.link.poll_flush(cx)).await
    }

    /// Closes the connection: sends what is queued and a Close frame, then waits up to
    /// [`close_timeout`](crate::Config::close_timeout) for the peer's Close frame.
    ///
    /// Returns how the connection ended; [`clean`](Closed::clean) is `false` if the peer did not
    /// answer in time. If the peer had begun already, its code and reason are in the result.
    /// Messages that arrive in the meantime can still be received afterwards, up to
    /// [`recv_queue_bytes_max`](crate::Options::recv_queue_bytes_max).
    ///
    /// # Errors
    /// `reason` is longer than 123 bytes.
    ///
    /// # Cancel safety
    /// If the future is dropped, the closing handshake continues in the background.
    pub async fn close(&mut self, code: CloseCode, reason: &str) -> Result<Closed> {
        self.link.start_close(code, reason)?;
        Ok(std::future::poll_fn(|cx| self.link.poll_closed(cx)).await)
    }

    /// Starts receiving the next message in chunks, in constant memory; returns `None` after the
    /// peer's Close frame.
    ///
    /// # Errors
    /// Same as for [`recv`](Self::recv), which also describes the cancel safety.
    pub async fn reader(&mut self) -> Result<Option<Reader<'_>>> {
        Reader::start(&self.link).await
    }

    /// Like [`reader`](Self::reader), but with another limit on the size of the message in bytes;
    /// `None` means no limit.
    ///
    /// Chunks are small, however large the message is, so this receives a large file in constant
    /// memory with the default options:
    ///
    /// ```no_run
    /// # use tokio::io::AsyncWriteExt;
    /// # async fn f(ws: &mut linerate::WebSocket, mut file: tokio::fs::File) -> linerate::Result<()> {
    /// if let Some(mut message) = ws.reader_with_limit(Some(5 << 30)).await? {
    ///     while let Some(chunk) = message.chunk().await? {
    ///         file.write_all(chunk.as_bytes()).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as for [`recv`](Self::recv), which also describes the cancel safety; also if the first
    /// chunk exceeds the limit.
    pub async fn reader_with_limit(
        &mut self,
        bytes_max: Option<u64>,
    ) -> Result<Option<Reader<'_>>> {
        Reader::start_with(&self.link, bytes_max.unwrap_or(u64::MAX)).await
    }

    /// Starts sending a message in fragments.
    pub fn writer(&mut self, kind: MessageKind) -> Writer<'_> {
        Writer::new(&self.link, kind)
    }

    /// Splits the connection into a sending and a receiving half for use in separate tasks; the
    /// sending half can be cloned.
    pub fn split(self) -> (Sender, Receiver) {
        // Each half adds its own handle; dropping `self` releases the original one.
        (
            Sender::new(self.link.clone()),
            Receiver::new(self.link.clone()),
        )
    }

    /// Takes the connection apart into the stream, the input that has not been received, and the
    /// output that has not been written.
    ///
    /// # Errors
    /// The connection is closing or closed, a message is still being sent in fragments, or messages
    /// may be compressed. The error comes with the connection, unchanged.
    #[allow(
        clippy::result_large_err,
        reason = "the error returns the caller's connection"
    )]
    pub fn into_parts(self) -> Result<Parts, (Self, PartsError)> {
        let taken = self.link.take_parts();
        taken.map_err(|error| (self, error))
    }

    /// Returns what is known about the connection: addresses, HTTP version and TLS. `None` once the
    /// connection is over.
    pub fn info(&self) -> Option<ConnectionInfo> {
        self.link.info()
    }

    /// Returns the address of the peer; behind a proxy, that of the proxy. `None` if the connection
    /// is over or does not use the Internet Protocol.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.info()?.peer_addr
    }

    /// Returns the subprotocol that was negotiated in the opening handshake.
    pub fn subprotocol(&self) -> Option<String> {
        self.link.lock().subprotocol().map(Into::into)
    }

    /// Returns how this side compresses its messages, or `None` if it does not compress them.
    #[cfg(feature = "deflate")]
    pub fn compression(&self) -> Option<linerate_proto::deflate::Context> {
        self.link.lock().engine().compression()
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        self.link.lock().engine().state()
    }

    /// Returns how the connection ended: the Close frames of both sides, and who began. `None`
    /// while the peer may still send messages.
    ///
    /// It is `Some` as soon as [`recv`](Self::recv) has returned `None` or an error. It may be
    /// `Some` earlier, while received messages are waiting for `recv`.
    pub fn closed(&self) -> Option<Closed> {
        self.link.lock().closed()
    }

    /// Returns the round-trip time of the most recent keepalive Ping.
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
