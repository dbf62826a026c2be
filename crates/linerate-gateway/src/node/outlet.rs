//! What the node asks of a connection.

use std::{fmt, net::IpAddr, time::SystemTime};

use linerate_hub::{ChannelName, ClientInfo};

use super::Dialect;
use crate::protocol::{
    Transmit,
    centrifuge::codes::{Disconnect, Unsubscribe},
};

/// The way out to one client, owned by its session.
///
/// The worker calls it on its own thread, between two turns of the session's task, and holds its hub
/// meanwhile: an outlet only takes, wakes its task and returns. It must not call the worker.
pub trait Outlet: fmt::Debug + Send + Sync + 'static {
    /// Says whether [`transmit`](Self::transmit) may be called now. Once it has said no, the owner calls
    /// [`Worker::writable`](super::Worker::writable) as soon as there is room. Only [`Transmit::Slow`] is given
    /// out without room.
    fn has_room(&self) -> bool;

    /// Takes the next of what is to be sent, in order; it may wait for [`flush`](Self::flush).
    ///
    /// For [`Transmit::Gap`] the protocol says that something was missed; for [`Transmit::Slow`] and
    /// [`Transmit::Unencodable`] the session ends the connection with its code.
    fn transmit(&self, transmit: Transmit);

    /// Lets go what was transmitted: called once a turn, so that it is one write.
    fn flush(&self);

    /// Takes something that is sent ahead of data, or done.
    fn notify(&self, notice: Notice);

    /// Returns how many bytes wait here for the socket.
    fn pending_bytes(&self) -> usize;

    /// Returns the memory of input that the session has not taken.
    fn received_bytes(&self) -> usize {
        0
    }
}

/// Something that happens to a client apart from publications.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notice {
    /// Close the connection.
    Disconnect(Disconnect),
    /// Somebody came to a channel of this client that asked to be told.
    Join {
        /// The channel.
        channel: ChannelName,
        /// Who.
        info: ClientInfo,
    },
    /// Somebody left a channel of this client that asked to be told.
    Leave {
        /// The channel.
        channel: ChannelName,
        /// Who.
        info: ClientInfo,
    },
    /// The application says until when the connection may last.
    Refresh {
        /// The new end; `None` for no end.
        expires: Option<SystemTime>,
        /// Whether it is over already.
        is_expired: bool,
    },
    /// Tokens were revoked, perhaps one that the client has shown: its session knows.
    Revoked,
    /// The application subscribes the client: to be done by its session.
    Subscribe {
        /// The channel.
        channel: ChannelName,
        /// What to keep of who is present, as JSON.
        info: Option<bytes::Bytes>,
    },
    /// The application ends a subscription: to be done by its session.
    Unsubscribe {
        /// The channel.
        channel: ChannelName,
        /// What the client is told.
        why: Unsubscribe,
    },
}

/// Who is connected, and how: for the server API and the admin page.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Unique in the cluster.
    pub client: String,
    /// The user; empty if anonymous.
    pub user: String,
    /// The client protocol, as `centrifuge-json`.
    pub protocol: &'static str,
    /// The transport, as `websocket`.
    pub transport: &'static str,
    /// The address of the client, behind trusted proxies.
    pub peer: Option<IpAddr>,
    /// What the client says that it is.
    pub agent: String,
    /// When the connection was opened.
    pub since: SystemTime,
}

impl Connection {
    /// Returns what the client speaks.
    pub const fn dialect(&self) -> Dialect {
        (self.protocol, self.transport)
    }
}
