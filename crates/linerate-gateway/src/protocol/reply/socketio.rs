//! Messages that only Socket.IO clients get.

use std::time::Duration;

use bytes::Bytes;

use crate::protocol::{codes::ClientError, private_id::PrivateId};

/// A message that only Socket.IO clients get. Namespaces are as clients know them, such as `/`.
#[derive(Clone, Debug)]
pub(crate) enum SocketIoMessage {
    /// Acknowledges an event.
    Ack {
        namespace: String,
        id: u64,
        /// The arguments: a JSON array, or the only one.
        data: Bytes,
    },
    /// Acknowledges an event that failed.
    AckError {
        namespace: String,
        id: u64,
        error: ClientError,
    },
    /// The client may not connect to a namespace.
    ConnectError {
        namespace: String,
        error: ClientError,
    },
    /// The client is connected to a namespace.
    Connected {
        namespace: String,
        /// The ID of the client.
        sid: String,
        /// The secret with which the client can return to its session.
        pid: Option<PrivateId>,
    },
    /// The client is disconnected from a namespace, and must not reconnect on its own.
    Disconnected { namespace: String },
    /// An event failed that is not acknowledged.
    Error {
        namespace: String,
        event: String,
        error: ClientError,
    },
    /// The connection is open.
    Open {
        /// The ID of the connection.
        sid: String,
        /// The transports that the client can change to.
        upgrades: &'static [&'static str],
        ping_interval: Duration,
        ping_timeout: Duration,
        /// The maximum size of a message from the client, in bytes.
        payload_bytes_max: usize,
    },
}
