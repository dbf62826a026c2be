//! The interface of the node to a connection.

use std::{fmt, net::IpAddr, sync::Arc, time::SystemTime};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use linerate_hub::{ChannelName, ClientInfo};

use crate::protocol::{
    Transmit,
    codes::{Disconnect, Unsubscribe},
    dialect::DialectName,
};
use crate::webhook::Tracked;

/// The output side of one client, owned by its session.
///
/// The worker calls it on its own thread, between two turns of the session's task, while it holds
/// its hub. An implementation must therefore only store what it is given, wake its task and return.
/// It must not call the worker.
pub(crate) trait Outlet: fmt::Debug + Send + Sync + 'static {
    /// Returns whether [`transmit`](Self::transmit) may be called now. After it has returned
    /// `false`, the owner calls [`Worker::writable`](super::Worker::writable) as soon as there is
    /// room. Only [`Transmit::Slow`] is transmitted without room.
    fn has_room(&self) -> bool;

    /// Queues the next item to send, in order, possibly until [`flush`](Self::flush).
    ///
    /// For [`Transmit::Gap`], the protocol reports that publications were missed. For
    /// [`Transmit::Slow`] and [`Transmit::Unencodable`], the session closes the connection with the
    /// respective code.
    fn transmit(&self, transmit: Transmit);

    /// Flushes queued output. Called once per turn so that it becomes a single write.
    fn flush(&self);

    /// Passes a notice to the session, which handles it ahead of data.
    fn notify(&self, notice: Notice);

    /// Returns the number of bytes queued for the socket.
    fn pending_bytes(&self) -> usize;

    /// Returns what is noted of the client for webhooks; `None` if there were none when it
    /// connected.
    fn tracked(&self) -> Option<&Tracked> {
        None
    }

    /// Returns the memory used by input that the session has not read yet, in bytes.
    fn received_bytes(&self) -> usize {
        0
    }
}

/// An event for a client other than a publication.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub(crate) enum Notice {
    /// Close the connection.
    Disconnect(Disconnect),
    /// A client joined a channel whose join events this client follows.
    Join {
        /// The channel.
        channel: ChannelName,
        /// The client that joined.
        info: ClientInfo,
    },
    /// A client left a channel whose leave events this client follows.
    Leave {
        /// The channel.
        channel: ChannelName,
        /// The client that left.
        info: ClientInfo,
    },
    /// The application disconnects the client from a namespace of Socket.IO.
    LeaveNamespace {
        /// The namespace.
        namespace: String,
    },
    /// The application changes when the connection expires.
    Refresh {
        /// The new expiry; `None` if the connection does not expire.
        expires: Option<SystemTime>,
        /// True if the connection has already expired.
        is_expired: bool,
    },
    /// Tokens were revoked, possibly one of this client's; the session checks its own.
    Revoked,
    /// The application subscribes the client; the session carries it out.
    Subscribe {
        /// The channel.
        channel: ChannelName,
        /// The channel information for presence, as JSON.
        info: Option<bytes::Bytes>,
    },
    /// A channel has this many subscriptions, on all nodes.
    SubscriptionCount {
        /// The channel.
        channel: ChannelName,
        /// The number of subscriptions.
        count: u64,
    },
    /// The application ends a subscription; the session carries it out.
    Unsubscribe {
        /// The channel.
        channel: ChannelName,
        /// The code and reason for the client.
        why: Unsubscribe,
    },
}

/// A description of a connected client, for the server API and the admin page.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    /// The client and its user.
    pub who: Arc<ClientInfo>,
    /// The client protocol and its transport.
    pub dialect: &'static DialectName,
    /// The address of the client; if it connected through trusted proxies, the one that they
    /// report.
    pub peer: Option<IpAddr>,
    /// The name of the client's software, as reported by the client; from
    /// [`Worker::agent`](super::Worker::agent).
    pub agent: Arc<str>,
    /// When the connection was opened, in milliseconds since 1970.
    pub since_ms: u64,
}

/// Returns a new client without a user that has this ID.
pub(crate) fn client_with_id(id: String) -> Arc<ClientInfo> {
    Arc::new(ClientInfo {
        client: id.into(),
        ..ClientInfo::default()
    })
}

/// Returns a new client without a user.
pub(crate) fn new_client() -> Arc<ClientInfo> {
    client_with_id(client_id(rand::random()))
}

/// Returns the ID that has these random bytes, without the first bit. The ID begins with a letter,
/// because clients of Socket.IO have a channel of this name, and NATS reserves names that begin
/// with `_`. It is short enough to be stored in place, without an allocation.
fn client_id(mut random: [u8; 16]) -> String {
    random[0] &= 0x7f;
    BASE64_URL_SAFE_NO_PAD.encode(random)
}

impl Connection {
    /// Returns the ID of the client, unique in the cluster.
    pub(crate) fn client(&self) -> &str {
        &self.who.client
    }

    /// Returns the user; empty if anonymous.
    pub(crate) fn user(&self) -> &str {
        &self.who.user
    }
}

#[cfg(test)]
mod tests {
    use super::client_id;

    #[test]
    fn ids_of_clients_are_names_of_channels_on_every_broker() {
        for (random, id) in [
            ([0; 16], "AAAAAAAAAAAAAAAAAAAAAA"),
            ([0xff; 16], "f____________________w"),
        ] {
            assert_eq!(client_id(random), id);
        }
        let first = |byte| client_id([byte; 16]).as_bytes()[0];
        assert!((0..=u8::MAX).all(|byte| first(byte).is_ascii_alphabetic()));
    }
}
