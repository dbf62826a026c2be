//! Requests that only Socket.IO clients make.

use bytes::Bytes;

/// A request that only Socket.IO clients make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SocketIoRequest {
    /// Acknowledges an event of the server.
    Ack {
        /// The namespace, such as `/`.
        namespace: String,
        /// The number of attachments that follow.
        announced: usize,
    },
    /// Sends an attachment of the request before it.
    Attachment(Bytes),
    /// Closes the connection.
    Close,
    /// Connects to a namespace.
    Connect {
        /// The namespace, such as `/`.
        namespace: String,
        /// What authenticates the client, as a JSON object.
        auth: Option<Bytes>,
    },
    /// Disconnects from a namespace.
    Disconnect {
        /// The namespace, such as `/`.
        namespace: String,
    },
    /// Sends an event.
    Event(SocketIoEvent),
}

/// An event from a client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SocketIoEvent {
    /// The namespace, such as `/`.
    pub(crate) namespace: String,
    /// The ID that the acknowledgement repeats; `None` if the client does not want one.
    pub(crate) id: Option<u64>,
    /// The name of the event.
    pub(crate) name: String,
    /// The arguments, as a JSON array.
    pub(crate) arguments: Bytes,
    /// The number of attachments that follow, and that the placeholders in the arguments name.
    pub(crate) announced: usize,
}

impl SocketIoRequest {
    /// Returns the name of the operation as used in metrics.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Ack { .. } => "ack",
            Self::Attachment(_) => "attachment",
            Self::Close | Self::Disconnect { .. } => "disconnect",
            Self::Connect { .. } => "connect",
            Self::Event(_) => "event",
        }
    }

    /// Returns the number of attachments that follow the request.
    pub(crate) const fn announced(&self) -> usize {
        match self {
            Self::Ack { announced, .. } => *announced,
            Self::Event(event) => event.announced,
            _ => 0,
        }
    }

    /// Returns the memory that the request takes, in bytes; small parts are left out.
    pub(crate) fn memory_bytes(&self) -> usize {
        let heap = match self {
            Self::Attachment(bytes) => bytes.len(),
            Self::Connect { namespace, auth } => {
                namespace.len() + auth.as_ref().map_or(0, Bytes::len)
            }
            Self::Event(event) => event.namespace.len() + event.name.len() + event.arguments.len(),
            Self::Ack { namespace, .. } | Self::Disconnect { namespace } => namespace.len(),
            Self::Close => 0,
        };
        size_of::<Self>() + heap
    }
}
