//! The messages between nodes, as JSON.

use bytes::Bytes;
use linerate_hub::ClientInfo;
use serde::{Deserialize, Serialize};

use crate::{
    auth::Revocation,
    protocol::polling::{PollEnd, PollingRefusal},
};

/// A message from a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Message {
    /// The ID of the sender.
    pub(crate) from: String,
    /// The content.
    pub(crate) body: Body,
}

/// The content of a message.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// Nodes have left the cluster: the sender, or nodes whose lease has ended.
    Goodbye { nodes: Vec<String> },
    /// The node has joined the cluster.
    Hello,
    /// The clients that joined and left channels, in order.
    Moves(Vec<PresenceMessage>),
    /// A part of the answer to a request.
    Reply {
        /// The number of the request.
        request: u64,
        /// True for the last part from this node.
        is_last: bool,
        /// The answer.
        answer: Answer,
    },
    /// Tokens have been revoked.
    Revoked(Revocation),
    /// A request.
    Request {
        /// The number to be repeated in replies.
        request: u64,
        /// The request.
        ask: NodeRequest,
    },
    /// How many subscriptions channels have on the node.
    SubscriptionCounts(Vec<(String, u64)>),
}

/// A client joined or left a channel.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PresenceMessage {
    pub(crate) channel: String,
    pub(crate) info: ClientRecord,
    pub(crate) has_come: bool,
}

/// A [`ClientInfo`] in a message between nodes. Information from tokens is JSON in a string.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct ClientRecord {
    pub(crate) user: String,
    pub(crate) client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) channel: Option<String>,
}

/// The requests of a node to others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NodeRequest {
    /// List the channels with subscribers, with their numbers of subscribers.
    Channels {
        /// List only channels that match, with `*` for any text; all channels if empty.
        pattern: String,
    },
    /// Close connections.
    Disconnect {
        whom: ConnectionSelector,
        code: u16,
        reason: String,
    },
    /// Accept a command of a client whose stream is on this node.
    Emulate {
        session: String,
        /// The command, in base64.
        data: String,
    },
    /// Fetch the output of a session on this node whose client polls, and wait for some.
    Fetch {
        session: String,
        /// How long to wait at most, in milliseconds; older nodes do not say it.
        #[serde(default)]
        hold_ms: Option<u64>,
    },
    /// Tell subscribers that publications may have been missed.
    Gap {
        /// The channels, with `*` for any text.
        patterns: Vec<String>,
    },
    /// Accept messages of a client that polls a session on this node.
    Messages {
        session: String,
        /// The body of the request, in base64.
        data: String,
    },
    /// Change the expiry of connections, in seconds since the Unix epoch.
    Refresh {
        whom: ConnectionSelector,
        expires_s: Option<u64>,
        is_expired: bool,
    },
    /// Subscribe connections.
    Subscribe {
        whom: ConnectionSelector,
        channel: String,
        info: Option<String>,
    },
    /// End subscriptions.
    Unsubscribe {
        whom: ConnectionSelector,
        /// The channel; all channels if empty.
        channel: String,
        code: u32,
        reason: String,
    },
}

/// Selects connections.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct ConnectionSelector {
    /// The connections of this user, unless a client is named. An empty name selects anonymous
    /// clients.
    pub user: String,
    /// Only this connection; all connections of the user if empty.
    pub client: String,
    /// Connections to exclude.
    #[serde(default)]
    pub except: Vec<String>,
}

/// The answers of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The channels, with their numbers of subscribers on the node.
    Channels(Vec<(String, u64)>),
    /// The number of affected connections.
    Count(u64),
    /// The output of a session whose client polls.
    Fetched {
        /// WebSocket frames, in base64.
        frames: String,
        end: PollEnd,
        /// Why the session has ended, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A request of a client that polls is refused.
    Refused(PollingRefusal),
}

impl NodeRequest {
    /// Returns the key of a request that changes nothing, whose answer callers can share.
    pub(super) fn question(&self) -> Option<String> {
        match self {
            Self::Channels { pattern } => Some(pattern.clone()),
            _ => None,
        }
    }

    /// Returns the session that a request of a client that polls is for.
    pub(in crate::node) fn polled_session(&self) -> Option<&str> {
        match self {
            Self::Fetch { session, .. } | Self::Messages { session, .. } => Some(session),
            _ => None,
        }
    }
}

impl Message {
    /// Returns the message as JSON.
    pub(crate) fn encode(&self) -> Bytes {
        // Serializing to memory fails only for maps with keys that are not strings; there are none.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Decodes a message; returns `None` if it is unknown, for example from a newer node.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// Returns whether a message is about clients that joined or left channels.
pub(crate) fn is_of_moves(message: &[u8]) -> bool {
    let message = Message::decode(message);
    message.is_some_and(|message| matches!(message.body, Body::Moves(_)))
}

impl ConnectionSelector {
    /// Returns whether a connection is selected.
    pub(crate) fn matches(&self, user: &str, client: &str) -> bool {
        let is_named = self.client.is_empty() || self.client == client;
        let is_of_user = self.user == user || (self.user.is_empty() && !self.client.is_empty());
        is_named && is_of_user && !self.except.iter().any(|other| other == client)
    }
}

impl From<&ClientInfo> for ClientRecord {
    fn from(info: &ClientInfo) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            user: info.user.to_string(),
            client: info.client.to_string(),
            connection: info.connection.as_deref().map(text),
            channel: info.channel.as_deref().map(text),
        }
    }
}

impl From<ClientRecord> for ClientInfo {
    fn from(person: ClientRecord) -> Self {
        let bytes = |text: String| text.into_bytes().into();
        Self {
            user: person.user.into(),
            client: person.client.into(),
            connection: person.connection.map(bytes),
            channel: person.channel.map(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::ClientInfo;

    use super::{Body, ClientRecord, ConnectionSelector, Message, NodeRequest};

    #[test]
    fn what_one_node_says_another_understands() {
        let ask = NodeRequest::Channels {
            pattern: "news".to_owned(),
        };
        let said = Message {
            from: "a".to_owned(),
            body: Body::Request { request: 7, ask },
        };
        let heard = Message::decode(&said.encode()).unwrap();
        assert_eq!(format!("{said:?}"), format!("{heard:?}"));
    }

    #[test]
    fn what_is_unknown_is_nothing() {
        for bytes in [
            &b""[..],
            b"{}",
            b"\xff",
            b"{\"from\":\"a\",\"body\":{\"sing\":1}}",
        ] {
            assert!(Message::decode(bytes).is_none());
        }
    }

    #[test]
    fn a_person_keeps_what_the_tokens_said() {
        let info = ClientInfo {
            user: "42".into(),
            client: "c".into(),
            connection: Some((*b"{\"name\":\"Ada\"}").into()),
            channel: None,
        };
        assert_eq!(ClientInfo::from(ClientRecord::from(&info)), info);
    }

    #[test]
    fn a_client_or_all_of_a_user_are_meant() {
        let mut whom = ConnectionSelector {
            user: "42".into(),
            ..ConnectionSelector::default()
        };
        assert!(whom.matches("42", "a"));
        assert!(!whom.matches("7", "a"));
        whom.except = vec!["a".to_owned()];
        assert!(!whom.matches("42", "a"));
        let whom = ConnectionSelector {
            client: "b".to_owned(),
            ..ConnectionSelector::default()
        };
        assert!(whom.matches("42", "b"));
        assert!(!whom.matches("42", "a"));
    }
}
