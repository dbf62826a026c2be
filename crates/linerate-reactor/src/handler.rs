//! What an application implements.

use linerate_proto::{
    engine::{Closed, Message},
    handshake::{Acceptance, Refusal, Request, Upgrade},
};

use crate::Tx;

/// How a connection came about.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Opened<'a> {
    /// A client asked for it by this request, and [`Handler::accept`] agreed.
    Accepted(&'a Request),
}

impl<'a> Opened<'a> {
    /// Returns the request of the client that asked for the connection.
    pub const fn request(self) -> Option<&'a Request> {
        match self {
            Self::Accepted(request) => Some(request),
        }
    }
}

/// Names a connection among all that a server ever has; for [`Remote`](crate::Remote).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ConnectionId {
    pub(crate) worker: u16,
    pub(crate) index: u32,
    /// Tells apart the connections that had the same index.
    pub(crate) serial: u32,
}

/// The callbacks of one route.
///
/// Each worker thread has its own clone of the handler, and calls it with the data of the connection
/// that the call is about. What the workers share goes behind an `Arc`. A callback must not block:
/// all connections of the worker wait for it. A panic ends the server.
///
/// All output of the callbacks that one read leads to is written at once, after the last of them.
pub trait Handler: Clone + Send + 'static {
    /// What is kept for each connection.
    type Data: 'static;

    /// Decides about a request that is well-formed and of an allowed origin: refuses it, chooses a
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
