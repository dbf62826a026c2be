//! The handle passed to callbacks.

mod output;

use std::{fmt, io, net::SocketAddr, ops::Range};

use linerate_proto::{
    CloseCode, SendError,
    engine::{Message, MessageKind},
    frame::BulkEncoder,
};

use self::output::Output;
#[cfg(feature = "rustls")]
use crate::tls::info::TlsInfo;
use crate::{
    commands::ConnectionHandle,
    connection::{Connection, Stage, id::ConnectionId},
    core::Core,
    driver::socket,
    outbound::{destination::Destination, error::ConnectError},
    remote::Remote,
    topics::SubscribeError,
};

/// The handle passed to the callbacks of a connection: it sends, subscribes, publishes, pauses the
/// input, and closes the connection.
///
/// ```
/// use linerate_reactor::{CloseCode, Context, Message, SendError};
///
/// /// Subscribes to the topic that a message names, and confirms that.
/// fn subscribe(cx: &mut Context<'_>, message: Message<'_>) -> Result<(), SendError> {
///     let Message::Text(topic) = message else {
///         return cx.close(CloseCode::UNSUPPORTED_DATA, "send the name of a topic");
///     };
///     match cx.subscribe(topic) {
///         Ok(_) => cx.send_text("subscribed"),
///         Err(error) => cx.close(CloseCode::POLICY_VIOLATION, &error.to_string()),
///     }
/// }
/// ```
pub struct Context<'a> {
    output: Output<'a>,
    last_in_input: bool,
}

impl<'a> Context<'a> {
    /// Creates the handle for a callback about `joined`, a message that was joined from pieces, or
    /// about a part of `input`.
    #[inline(always)]
    pub(crate) const fn new(
        core: &'a mut Core,
        connection: &'a mut Connection,
        input: &'a [u8],
        joined: &'a [u8],
        last_in_input: bool,
    ) -> Self {
        let output = Output {
            core,
            connection,
            input,
            joined,
            tail: 0..0,
        };
        Self {
            output,
            last_in_input,
        }
    }

    /// Returns the state that all connections of the worker share.
    pub(crate) const fn core(&mut self) -> &mut Core {
        self.output.core
    }

    /// Returns the part of the joined message that is to be sent after all other output.
    pub(crate) fn take_tail(&mut self) -> Range<usize> {
        std::mem::take(&mut self.output.tail)
    }

    /// Sends a message.
    ///
    /// To send back a message that is being received, or a part of it, pass the borrowed data: it
    /// is written without a copy where that pays.
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.output.send(message.kind(), message.as_bytes())
    }

    /// Sends a text message; see [`send`](Self::send).
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send_text(&mut self, text: &str) -> Result<(), SendError> {
        self.output.send(MessageKind::Text, text.as_bytes())
    }

    /// Sends a binary message; see [`send`](Self::send).
    ///
    /// # Errors
    /// If the connection is closing.
    #[inline]
    pub fn send_binary(&mut self, bytes: &[u8]) -> Result<(), SendError> {
        self.output.send(MessageKind::Binary, bytes)
    }

    /// Sends a message that is never compressed. Use it for secrets that are sent together with
    /// data that others can choose (RFC 7692 §8), and for data that is already compressed.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send_uncompressed(&mut self, message: Message<'_>) -> Result<(), SendError> {
        self.output.send_uncompressed(message)
    }

    /// Sends a message whose payload is the concatenation of all `parts`. The parts of a text
    /// message must together be valid UTF-8.
    ///
    /// # Errors
    /// If the connection is closing.
    pub fn send_parts(&mut self, kind: MessageKind, parts: &[&[u8]]) -> Result<(), SendError> {
        self.output.send_parts(kind, parts)
    }

    /// Sends a piece of a message: the first call begins the message, and the call with `ends` ends
    /// it. Each piece is a fragment (RFC 6455 §5.4) and is written like a message. Data received in
    /// [`chunk`](crate::Handler::chunk) may be sent back.
    ///
    /// The pieces of a text message may be split anywhere; together they must be valid UTF-8.
    /// Before the last piece has been sent, no other message can be sent on this connection, and
    /// publications for it are dropped and counted.
    ///
    /// # Errors
    /// If the connection is closing, or a message of the other kind is in progress.
    pub fn send_chunk(
        &mut self,
        kind: MessageKind,
        bytes: &[u8],
        ends: bool,
    ) -> Result<(), SendError> {
        self.output.send_chunk(kind, bytes, ends)
    }

    /// Sends a message of `bytes` bytes that `fill` writes into the output, which is initially
    /// zero. The content of a text message must be valid UTF-8.
    ///
    /// # Errors
    /// If the connection is closing; `fill` was not called.
    pub fn send_with(
        &mut self,
        kind: MessageKind,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), SendError> {
        self.output.send_with(kind, bytes, fill)
    }

    /// Sends the frames that `encode` pushes, at most `bytes_max` bytes including their headers.
    /// They must be whole messages, pushed without a masking key; on a client's connection they are
    /// masked afterwards. They are never compressed.
    ///
    /// # Errors
    /// If the connection is closing; `encode` was not called.
    pub fn send_frames(
        &mut self,
        bytes_max: usize,
        encode: impl FnOnce(&mut BulkEncoder<'_>),
    ) -> Result<(), SendError> {
        self.output.send_frames(bytes_max, encode)
    }

    /// Sends a Ping. The Pong is passed to [`Handler::pong`](crate::Handler::pong).
    ///
    /// # Errors
    /// If the connection is closing, or `payload` has more than 125 bytes.
    pub fn ping(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.output.ping(payload)
    }

    /// Starts the closing handshake. Messages may still arrive until the peer's Close frame.
    ///
    /// # Errors
    /// If `reason` has more than 123 bytes.
    pub fn close(&mut self, code: CloseCode, reason: &str) -> Result<(), SendError> {
        self.output
            .connection
            .engine
            .close(code, reason, self.output.core.now)
    }

    /// Pauses the input: no message is read or passed to the handler until [`resume`](Self::resume)
    /// or [`Remote::resume`]. Meanwhile control frames are not processed either, and no keepalive
    /// Ping is due.
    pub fn pause(&mut self) {
        self.output.connection.paused = true;
    }

    /// Resumes the input.
    pub fn resume(&mut self) {
        self.output.connection.paused = false;
    }

    /// Subscribes to a topic; returns whether the subscription is new.
    ///
    /// # Errors
    /// If the name is too long, or the connection has too many subscriptions.
    pub fn subscribe(&mut self, topic: &str) -> Result<bool, SubscribeError> {
        let Core {
            reactor, topics, ..
        } = &mut *self.output.core;
        let bytes_max = reactor.options.topic_bytes_max;
        if topic.len() > bytes_max {
            let bytes = topic.len();
            return Err(SubscribeError::NameTooLong { bytes, bytes_max });
        }
        let subscriptions_max = reactor.options.subscriptions_max;
        let connection = self.output.connection.slot.index;
        topics.subscribe(connection, topic, subscriptions_max, || {
            let options = reactor.topic_rules.find(topic);
            options.unwrap_or(reactor.options.topic)
        })
    }

    /// Ends a subscription; returns whether it existed.
    pub fn unsubscribe(&mut self, topic: &str) -> bool {
        self.output
            .core
            .topics
            .unsubscribe(self.output.connection.slot.index, topic)
    }

    /// Publishes a message to all subscribers of a topic, including this connection if it is one.
    ///
    /// The message is encoded once. It is sent when the worker has read all pending input, and
    /// after one millisecond at the latest, together with all other recent publications. It
    /// therefore follows what this callback sends. Before it delivers to many subscribers, the
    /// worker waits for a few microseconds in case more is published. [`Overflow`](crate::Overflow)
    /// decides what happens where a subscriber does not keep up.
    #[inline]
    pub fn publish(&mut self, topic: &str, message: Message<'_>) {
        self.output
            .core
            .burst
            .push(topic, message.kind(), message.as_bytes());
    }

    /// Opens another connection on this worker, with the callbacks of this handler:
    /// [`open`](crate::Handler::open) once it is open, or [`failed`](crate::Handler::failed) if it
    /// cannot be opened.
    ///
    /// # Errors
    /// If the connection limit is reached, or the reactor is shutting down.
    pub fn connect(&mut self, destination: &Destination) -> Result<(), ConnectError> {
        let Stage::Open { route, .. } = self.output.connection.stage else {
            unreachable!("callbacks are about connections that are open");
        };
        self.output.core.connect(destination, route)
    }

    /// Returns a handle to send to another connection of this worker, or to pause or close it;
    /// `None` if the connection belongs to another worker, which [`Remote::send`] reaches.
    /// Connections opened by [`connect`](Self::connect) belong to this worker.
    pub fn to(&mut self, connection: ConnectionId) -> Option<ConnectionHandle<'_>> {
        self.output.core.handle_to(connection)
    }

    /// Returns whether the message ends the input that has been read, so that nothing more will be
    /// written together with the reply.
    ///
    /// `false` may also mean that an unfinished message follows.
    #[inline]
    pub const fn last_in_input(&self) -> bool {
        self.last_in_input
    }

    /// Returns how many bytes of output the kernel has not accepted yet; see
    /// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max).
    pub fn backlog_bytes(&self) -> usize {
        self.output.connection.backlog.len()
    }

    /// Returns the identifier of the connection, for example for [`Remote::resume`].
    pub const fn id(&self) -> ConnectionId {
        ConnectionId {
            worker: self.output.core.number,
            slot: self.output.connection.slot,
        }
    }

    /// Returns the address of the peer. The kernel is asked each time, because an idle connection
    /// should not need memory for it.
    ///
    /// Behind a proxy, this is the proxy's address.
    ///
    /// # Errors
    /// If the socket is a Unix domain socket, or the connection is already lost, which is common in
    /// [`close`](crate::Handler::close).
    ///
    /// ```
    /// use linerate_reactor::{Context, Handler, Message, Opened};
    ///
    /// /// Keeps the address of each client.
    /// #[derive(Clone)]
    /// struct Named;
    ///
    /// impl Handler for Named {
    ///     type Data = String;
    ///
    ///     fn open(&mut self, cx: &mut Context<'_>, _opened: Opened<'_>) -> String {
    ///         match cx.peer_addr() {
    ///             Ok(address) => address.ip().to_string(),
    ///             Err(_) => "unknown".to_owned(),
    ///         }
    ///     }
    ///
    ///     fn message(&mut self, name: &mut String, _cx: &mut Context<'_>, _: Message<'_>) {
    ///         println!("a message from {name}");
    ///     }
    /// }
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        socket::peer_addr(&self.output.connection.socket)
    }

    /// Returns our address of the connection; see [`peer_addr`](Self::peer_addr).
    ///
    /// # Errors
    /// If the socket is a Unix domain socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        socket::local_addr(&self.output.connection.socket)
    }

    /// Returns what the TLS handshake has negotiated; `None` if the connection is not encrypted or
    /// its encrypted output has ended.
    #[cfg(feature = "rustls")]
    pub fn tls(&self) -> Option<TlsInfo<'_>> {
        self.output.connection.tls.as_ref()?.info()
    }

    /// Returns the handle on the server or connector.
    pub fn remote(&self) -> Remote {
        Remote(self.output.core.reactor.clone())
    }
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("id", &self.id())
            .field("backlog_bytes", &self.backlog_bytes())
            .field("last_in_input", &self.last_in_input)
            .finish_non_exhaustive()
    }
}
