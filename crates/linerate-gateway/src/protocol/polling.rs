//! Long polling: requests of a client in place of a WebSocket.
//!
//! A client that polls has the same session as a client on a WebSocket, and uses the same dialect.
//! The frames that a WebSocket would carry wait for the next request that fetches them, which
//! [`PollingEndpoint`](super::dialect::PollingEndpoint) turns into the body of its response.
//! Messages of the client arrive as bodies, each of which may have several of them.

use std::fmt;

use bytes::Bytes;
use linerate_proto::{Opcode, frame::Header};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{codes::Refusal, decode::DecodeError};

/// What a request is for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PollingRequest {
    /// Opens a session.
    Open,
    /// Fetches the messages to the client, and waits for them if there are none.
    Poll(PolledName),
    /// Has messages of the client as its body.
    Send(PolledName),
    /// Opens a WebSocket: for a new session, or to continue this one.
    WebSocket(Option<PolledName>),
}

/// Identifies a session whose client polls, so that any node can find it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PolledName {
    /// The ID of the node that has the session.
    pub(crate) node: String,
    /// The name of the session on this node, which others cannot guess.
    pub(crate) session: Uuid,
}

/// What has happened to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PollingOutcome<'a> {
    /// The client may not connect.
    Denied(&'a Refusal),
    /// A session with this name is open. If the server speaks first, these are its first messages.
    Opened(&'a PolledName, &'a Polled),
    /// A poll of the session with this name has fetched messages.
    Polled(&'a PolledName, &'a Polled),
    Refused(PollingRefusal),
    Sent,
}

/// The messages to a client that a poll has fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Polled {
    /// Complete WebSocket frames, in pieces of any number of them.
    pub(crate) frames: Vec<Bytes>,
    pub(crate) end: PollEnd,
    /// Why the session has ended, for people.
    pub(crate) reason: Option<String>,
}

/// Why a poll ends.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PollEnd {
    /// There are messages.
    Ready,
    /// The poll has lasted as long as it may, without a message.
    Idle,
    /// The client is about to continue on a WebSocket, where all messages arrive.
    Upgrading,
    /// The session has ended, and all messages have been fetched.
    Closed,
}

/// How the messages in the body of a request are limited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BodyLimit {
    /// The body is not longer than a message may be. Clients know this limit.
    Body,
    /// Each message is, with this byte between messages. Clients know no limit on bodies, so that
    /// these can be longer; the session gets them in parts.
    Message { separator: u8 },
}

/// A message in the body of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ClientMessage {
    Binary(Bytes),
    Text(Bytes),
}

/// The first message in a body, and the rest of the body; `None` if it was the last message.
pub(crate) type FirstMessage = (Result<ClientMessage, DecodeError>, Option<Bytes>);

/// What a message means on a WebSocket that wants to continue a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ProbeStep {
    /// The WebSocket works if the client receives this text.
    Answer(&'static str),
    /// The session continues on the WebSocket from now on.
    Upgrade,
}

/// The parts of a response that the protocol decides on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct PollingResponse {
    pub(crate) status: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

/// Why a request of a client that polls is refused.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PollingRefusal {
    #[error("method of the request opens no session")]
    BadHandshakeMethod,
    #[error("request does not fit its session")]
    BadRequest,
    /// The origin of the page is not allowed.
    #[error("origin is not allowed")]
    Forbidden,
    #[error("body exceeds the limit of {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("message exceeds the limit of {bytes_max} bytes")]
    TooLong { bytes_max: usize },
    #[error("too many polls wait for other nodes")]
    Unavailable,
    /// The session does not exist, or its node does not answer.
    #[error("session is unknown, or its node is unavailable")]
    UnknownSession,
    #[error("transport is unknown")]
    UnknownTransport,
    #[error("version of the protocol is not supported")]
    UnsupportedVersion,
}

/// Returns the kind and the payload of each frame in a piece. What no encoder of the gateway has
/// written ends the iteration.
pub(crate) fn messages(piece: &[u8]) -> impl Iterator<Item = (Opcode, &[u8])> {
    let mut rest = piece;
    std::iter::from_fn(move || {
        let (header, header_bytes) = Header::decode(rest).ok()??;
        let payload_bytes = usize::try_from(header.payload_bytes).ok()?;
        let (payload, behind) = rest.get(header_bytes..)?.split_at_checked(payload_bytes)?;
        rest = behind;
        Some((header.opcode, payload))
    })
}

impl Polled {
    /// Returns what a poll of a session that continues has fetched.
    pub(crate) const fn new(frames: Vec<Bytes>, end: PollEnd) -> Self {
        Self {
            frames,
            end,
            reason: None,
        }
    }
}

impl PolledName {
    /// Reads what [`to_string`](ToString::to_string) has written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (session, node) = text.split_once('.')?;
        Some(Self {
            session: Uuid::try_parse(session).ok()?,
            node: node.to_owned(),
        })
    }
}

impl fmt::Display for PolledName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session, self.node)
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::{Opcode, frame};
    use uuid::Uuid;

    use super::{PolledName, messages};

    #[test]
    fn names_are_read_as_they_are_written() {
        let name = PolledName {
            node: "node.1-é".to_owned(),
            session: Uuid::from_u128(7),
        };
        assert_eq!(PolledName::parse(&name.to_string()), Some(name));
        for text in ["", ".", "a.b", "00000000-0000-0000-0000-000000000007"] {
            assert_eq!(PolledName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn frames_are_messages() {
        let long = [b'x'; 70_000];
        let mut piece = Vec::new();
        frame::append(&mut piece, Opcode::Text, b"a");
        frame::append(&mut piece, Opcode::Binary, b"");
        frame::append(&mut piece, Opcode::Text, &long);
        let found: Vec<_> = messages(&piece).collect();
        let expected = [
            (Opcode::Text, &b"a"[..]),
            (Opcode::Binary, b""),
            (Opcode::Text, &long),
        ];
        assert_eq!(found, expected);
        assert_eq!(messages(&piece[..piece.len() - 1]).count(), 2);
        assert_eq!(messages(b"\xff\xff").count(), 0);
    }
}
