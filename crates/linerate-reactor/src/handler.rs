//! The trait that an application implements.

use linerate_proto::{
    CloseCode,
    engine::{Chunk, Closed, Message},
    handshake::{Acceptance, Negotiated, Refusal, Request, Upgrade},
};

use crate::{
    context::Context,
    outbound::{destination::Destination, error::ConnectError},
    worker_context::WorkerContext,
};

/// How a connection was opened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Opened<'a> {
    /// A client requested it, and [`Handler::accept`] agreed.
    Accepted(&'a Request),
    /// We requested it from a server, and the server agreed.
    Connected {
        /// The destination that we connected to.
        destination: &'a Destination,
        /// The server's response: the subprotocol and the headers.
        response: &'a Negotiated,
    },
    /// Another process had opened it and exported it. Only a
    /// [`LocalReactor`](crate::LocalReactor), which has no handlers, imports connections.
    Imported,
}

impl<'a> Opened<'a> {
    /// Returns the client's request, if a client opened the connection.
    pub const fn request(self) -> Option<&'a Request> {
        match self {
            Self::Accepted(request) => Some(request),
            Self::Connected { .. } | Self::Imported => None,
        }
    }

    /// Returns the destination, if we opened the connection.
    pub const fn destination(self) -> Option<&'a Destination> {
        match self {
            Self::Accepted(_) | Self::Imported => None,
            Self::Connected { destination, .. } => Some(destination),
        }
    }
}

/// The callbacks of one route.
///
/// Each worker thread has its own clone of the handler and passes it the data of the connection
/// that a call is about. Put state that the workers share in an `Arc`. A callback must not block,
/// because all connections of the worker wait for it. A panic ends the server.
///
/// All output of the callbacks that result from one read is written at once, after the last
/// callback.
///
/// The connections that a [`Context`] of this handler [opens](Context::connect) also belong to this
/// handler, as do those of a [`Connector`](crate::Connector). Each is first announced by
/// [`open`](Self::open) or [`failed`](Self::failed).
///
/// ```
/// use linerate_reactor::{Closed, Context, Handler, Message, Opened};
///
/// /// Echoes messages, and counts those of each connection.
/// #[derive(Clone)]
/// struct Echo;
///
/// impl Handler for Echo {
///     type Data = u64;
///
///     fn open(&mut self, _cx: &mut Context<'_>, _opened: Opened<'_>) -> u64 {
///         0
///     }
///
///     fn message(&mut self, echoed: &mut u64, cx: &mut Context<'_>, message: Message<'_>) {
///         // This fails only if the connection is closing.
///         if cx.send(message).is_ok() {
///             *echoed += 1;
///         }
///     }
///
///     fn close(&mut self, echoed: u64, _cx: &mut Context<'_>, closed: Closed) {
///         println!("closed with {} after {echoed} messages", closed.code);
///     }
/// }
/// ```
pub trait Handler: Clone + Send + 'static {
    /// The data kept for each connection.
    type Data: 'static;

    /// Messages whose first frame has this many bytes or more, and which have not arrived
    /// completely, are streamed: their pieces go to [`chunk`](Self::chunk) as they arrive, so that
    /// the message is neither held in memory as a whole nor copied where its pieces are large. All
    /// other messages are passed to [`message`](Self::message) as a whole.
    ///
    /// The inflated length of a compressed message is not known in advance: when such a message
    /// begins, all that is known is whether it has 16 KiB or more.
    ///
    /// Default: no message is streamed.
    const STREAMED_BYTES_MIN: u64 = u64::MAX;

    /// Decides about a client's request that is well-formed and comes from an allowed origin: it
    /// can refuse the request, choose a subprotocol or add headers.
    ///
    /// # Errors
    /// The refusal to send to the client.
    fn accept<'u>(&mut self, upgrade: &'u Upgrade<'_>) -> Result<Acceptance<'u>, Refusal> {
        Ok(upgrade.accept())
    }

    /// Starts a connection and returns its data. Messages sent here precede all others.
    fn open(&mut self, cx: &mut Context<'_>, opened: Opened<'_>) -> Self::Data;

    /// Handles a whole message.
    fn message(&mut self, data: &mut Self::Data, cx: &mut Context<'_>, message: Message<'_>);

    /// Handles a piece of a long message; see [`STREAMED_BYTES_MIN`](Self::STREAMED_BYTES_MIN).
    ///
    /// A piece of 16 KiB or more is passed without a copy, from where it was read. Smaller pieces
    /// are first joined until there are 64 KiB or the message ends.
    ///
    /// Text is validated up to the end of each piece, which may be in the middle of a code point.
    /// If a later piece is not valid UTF-8 or the connection ends, the next call is
    /// [`close`](Self::close).
    fn chunk(&mut self, data: &mut Self::Data, cx: &mut Context<'_>, chunk: Chunk<'_>) {
        _ = (data, cx, chunk);
    }

    /// Called when a requested connection could not be opened, with the reason.
    ///
    /// Retrying is up to the handler: call [`WorkerContext::connect`] with the same destination
    /// and, to spare a server that has just restarted, [a delay](Destination::with_delay).
    fn failed(
        &mut self,
        worker: &mut WorkerContext<'_>,
        destination: &Destination,
        error: ConnectError,
    ) {
        _ = (worker, destination, error);
    }

    /// Called when a slow peer's backlog has reached
    /// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max). The connection's input is
    /// not read until [`drain`](Self::drain). Any other source that feeds the connection should
    /// also stop.
    fn congested(&mut self, data: &mut Self::Data, cx: &mut Context<'_>) {
        _ = (data, cx);
    }

    /// Called when a message has been arriving for longer than
    /// [`Options::message_timeout`](crate::Options::message_timeout), and again after each further
    /// such time. Default: closes the connection with 1008.
    fn message_late(&mut self, data: &mut Self::Data, cx: &mut Context<'_>) {
        _ = data;
        // The reason is within the length limit, and there is no other error.
        _ = cx.close(CloseCode::POLICY_VIOLATION, "message takes too long");
    }

    /// Called when the whole backlog of a slow peer has been written.
    fn drain(&mut self, data: &mut Self::Data, cx: &mut Context<'_>) {
        _ = (data, cx);
    }

    /// Called for each Ping. The reactor answers Pings itself.
    fn ping(&mut self, data: &mut Self::Data, cx: &mut Context<'_>, payload: &[u8]) {
        _ = (data, cx, payload);
    }

    /// Called for each Pong.
    fn pong(&mut self, data: &mut Self::Data, cx: &mut Context<'_>, payload: &[u8]) {
        _ = (data, cx, payload);
    }

    /// Called when the connection has ended, once for each [`open`](Self::open); hands the data
    /// back. Nothing can be sent any more, but publishing still works.
    fn close(&mut self, data: Self::Data, cx: &mut Context<'_>, closed: Closed) {
        _ = (data, cx, closed);
    }
}
