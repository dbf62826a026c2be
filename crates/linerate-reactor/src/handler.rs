//! What an application implements.

use linerate_proto::{
    engine::{Chunk, Closed, Message},
    handshake::{Acceptance, Negotiated, Refusal, Request, Upgrade},
};

use crate::{ConnectError, Destination, Turn, Tx};

/// How a connection came about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Opened<'a> {
    /// A client asked for it by this request, and [`Handler::accept`] agreed.
    Accepted(&'a Request),
    /// We asked a server for it, and it agreed.
    Connected {
        /// What it was asked for.
        destination: &'a Destination,
        /// The answer: the subprotocol and the headers.
        response: &'a Negotiated,
    },
}

impl<'a> Opened<'a> {
    /// Returns the request of the client that asked for the connection.
    pub const fn request(self) -> Option<&'a Request> {
        match self {
            Self::Accepted(request) => Some(request),
            Self::Connected { .. } => None,
        }
    }

    /// Returns what we asked for, if it was us who asked.
    pub const fn destination(self) -> Option<&'a Destination> {
        match self {
            Self::Accepted(_) => None,
            Self::Connected { destination, .. } => Some(destination),
        }
    }
}

/// Names a connection among all that a server or a connector ever has; for
/// [`Remote`](crate::Remote) and [`Tx::to`].
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ConnectionId {
    pub(crate) worker: u16,
    pub(crate) index: u32,
    /// Tells apart the connections that had the same index.
    pub(crate) serial: u32,
}

impl ConnectionId {
    /// Returns what the driver reports for the connection.
    pub(crate) const fn token(self) -> u64 {
        (self.serial as u64) << 32 | self.index as u64
    }
}

/// The callbacks of one route.
///
/// Each worker thread has its own clone of the handler, and calls it with the data of the connection
/// that the call is about. What the workers share goes behind an `Arc`. A callback must not block:
/// all connections of the worker wait for it. A panic ends the server.
///
/// All output of the callbacks that one read leads to is written at once, after the last of them.
///
/// The connections that a [`Tx`] of this handler [opens](Tx::connect) belong to this handler too, as
/// do those of a [`Connector`](crate::Connector): each is announced by [`open`](Self::open) or by
/// [`failed`](Self::failed), and nobody has it before.
pub trait Handler: Clone + Send + 'static {
    /// What is kept for each connection.
    type Data: 'static;

    /// Messages whose first frame has this many bytes or more, and of which not all has arrived yet,
    /// are not put together: their pieces go to [`chunk`](Self::chunk) as they arrive, so that they
    /// take no memory for the whole and no copy of what is large. All others come whole to [`message`](Self::message).
    /// A compressed message does not say how long it is: that it has 16 KiB or more is all that is known when it
    /// begins. Default: none comes in pieces.
    const STREAMED_BYTES_MIN: u64 = u64::MAX;

    /// Decides about a client's request that is well-formed and of an allowed origin: refuses it, chooses a
    /// subprotocol, adds headers.
    ///
    /// # Errors
    /// The answer that refuses.
    fn accept<'u>(&mut self, upgrade: &'u Upgrade<'_>) -> Result<Acceptance<'u>, Refusal> {
        Ok(upgrade.accept())
    }

    /// Starts a connection and returns its data. What is sent here arrives before anything else.
    fn open(&mut self, tx: &mut Tx<'_>, opened: Opened<'_>) -> Self::Data;

    /// Takes a whole message.
    fn message(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>, message: Message<'_>);

    /// Takes a piece of a long message, see [`STREAMED_BYTES_MIN`](Self::STREAMED_BYTES_MIN).
    ///
    /// A piece of 16 KiB or more lies where it was read. Smaller ones are put together up to 64 KiB
    /// first, but for the last.
    ///
    /// Text is validated up to the end of each piece, which may stand inside a code point. If a later
    /// piece is not UTF-8 or the connection ends, [`close`](Self::close) is what comes next.
    fn chunk(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>, chunk: Chunk<'_>) {
        _ = (data, tx, chunk);
    }

    /// Learns that a connection that was to be opened is not, and why.
    ///
    /// To try again is up to the handler: [`Turn::connect`] with the same destination and, for the
    /// sake of a server that has just come back, [a delay](Destination::with_delay).
    fn failed(&mut self, turn: &mut Turn<'_>, destination: &Destination, error: ConnectError) {
        _ = (turn, destination, error);
    }

    /// Learns that a slow peer has let
    /// [`Options::backlog_bytes_max`](crate::Options::backlog_bytes_max) wait, so that
    /// the input of the connection is not read until [`drain`](Self::drain). Whoever else feeds it
    /// should stop too.
    fn congested(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>) {
        _ = (data, tx);
    }

    /// Learns that all that waited for a slow peer has been written.
    fn drain(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>) {
        _ = (data, tx);
    }

    /// Learns of a Ping, which is answered without it.
    fn ping(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>, payload: &[u8]) {
        _ = (data, tx, payload);
    }

    /// Learns of a Pong.
    fn pong(&mut self, data: &mut Self::Data, tx: &mut Tx<'_>, payload: &[u8]) {
        _ = (data, tx, payload);
    }

    /// Takes the data back: the connection is over. Called once for each [`open`](Self::open);
    /// nothing can be sent any more, but publishing works.
    fn close(&mut self, data: Self::Data, tx: &mut Tx<'_>, closed: Closed) {
        _ = (data, tx, closed);
    }
}
