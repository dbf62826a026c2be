//! What nodes say to each other, as JSON.

use bytes::Bytes;
use linerate_hub::ClientInfo;
use serde::{Deserialize, Serialize};

use crate::auth::Revocation;

/// A message of a node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Message {
    /// Who says it.
    pub(crate) from: String,
    /// What is said.
    pub(crate) body: Body,
}

/// What is said.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Body {
    /// How the node is, said every few seconds.
    Announcement(NodeInfo),
    /// The node goes.
    Goodbye,
    /// Who came to channels and who left, in order.
    Moves(Vec<Move>),
    /// A part of the answer to a request.
    Reply {
        /// Of which request.
        request: u64,
        /// Who asked.
        to: String,
        /// Whether nothing follows from this node.
        is_last: bool,
        /// The answer.
        answer: Answer,
    },
    /// Tokens are revoked.
    Revoked(Revocation),
    /// Something asked of all nodes, or of one.
    Request {
        /// To be named in replies.
        request: u64,
        /// Who is asked; all if `None`.
        to: Option<String>,
        /// What is asked.
        ask: Ask,
    },
}

/// How a node is.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct NodeInfo {
    /// Names this incarnation.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Seconds since its start.
    pub uptime_s: u64,
    /// Connected clients.
    pub clients: u64,
    /// Different users among them.
    pub users: u64,
    /// Subscriptions of them.
    pub subscriptions: u64,
    /// Channels with subscribers.
    pub channels: u64,
}

/// Somebody came to a channel, or left it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Move {
    pub(crate) channel: String,
    pub(crate) info: Person,
    pub(crate) has_come: bool,
}

/// A [`ClientInfo`] between nodes. What the tokens say is JSON, as text.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Person {
    pub(crate) user: String,
    pub(crate) client: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) connection: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) channel: Option<String>,
}

/// What a node may ask of others.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// Which channels have subscribers, and how many.
    Channels {
        /// Only those that match, with `*` for any text; all if empty.
        pattern: String,
    },
    /// Close connections.
    Disconnect {
        whom: Whom,
        code: u16,
        reason: String,
    },
    /// Take a command of a client whose stream is on the node.
    Emulate {
        session: String,
        /// In base64.
        data: String,
    },
    /// Who is present in a channel.
    Presence {
        channel: String,
        /// Bytes that may be told of them.
        #[serde(default = "unbounded")]
        bytes_max: usize,
    },
    /// How many are present in a channel.
    PresenceStats { channel: String },
    /// Change until when connections may last, in seconds since 1970.
    Refresh {
        whom: Whom,
        expires_s: Option<u64>,
        is_expired: bool,
    },
    /// Subscribe connections.
    Subscribe {
        whom: Whom,
        channel: String,
        info: Option<String>,
    },
    /// End subscriptions.
    Unsubscribe {
        whom: Whom,
        /// All channels if empty.
        channel: String,
        code: u32,
        reason: String,
    },
}

/// Which connections are meant.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Whom {
    /// Those of this user, unless a client is named. An empty name is that of anonymous users.
    pub user: String,
    /// Just this connection; any of the user if empty.
    pub client: String,
    /// Connections that are not meant.
    #[serde(default)]
    pub except: Vec<String>,
}

/// What a node may answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Channels, and how many subscribers they have on the node.
    Channels(Vec<(String, u64)>),
    /// How many connections it concerned.
    Count(u64),
    /// Who is present on the node.
    Presence(Vec<Person>),
    /// How many are present on the node, and hashes of their users.
    PresenceStats { clients: u64, users: Vec<u64> },
    /// More are present on the node than may be told of.
    PresenceTooLarge,
}

/// What a node asks for that knows of no bound.
const fn unbounded() -> usize {
    usize::MAX
}

impl Answer {
    /// Returns about how many bytes tell who is present.
    pub(super) fn presence_bytes(&self) -> usize {
        let bytes = |person: &Person| {
            let optional = [&person.connection, &person.channel].into_iter().flatten();
            let optional = optional.map(String::len).sum::<usize>();
            person.user.len() + person.client.len() + optional
        };
        match self {
            Self::Presence(people) => people.iter().map(bytes).sum(),
            _ => 0,
        }
    }
}

impl Ask {
    /// Returns how many bytes may be told of who is present.
    pub(super) const fn presence_bytes_max(&self) -> usize {
        match self {
            Self::Presence { bytes_max, .. } => *bytes_max,
            _ => usize::MAX,
        }
    }
}

impl Message {
    /// Returns the message as JSON.
    pub(crate) fn encode(&self) -> Bytes {
        // Serialising to memory fails only for maps whose keys are no text; there are none.
        serde_json::to_vec(self).unwrap_or_default().into()
    }

    /// Returns what `bytes` say; `None` if that is nothing known, as from a newer node.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

impl Whom {
    /// Says whether a connection is meant.
    pub(crate) fn matches(&self, user: &str, client: &str) -> bool {
        let is_named = self.client.is_empty() || self.client == client;
        let is_of_user = self.user == user || (self.user.is_empty() && !self.client.is_empty());
        is_named && is_of_user && !self.except.iter().any(|other| other == client)
    }
}

impl From<&ClientInfo> for Person {
    fn from(info: &ClientInfo) -> Self {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        Self {
            user: info.user.clone(),
            client: info.client.clone(),
            connection: info.connection.as_ref().map(text),
            channel: info.channel.as_ref().map(text),
        }
    }
}

impl From<Person> for ClientInfo {
    fn from(person: Person) -> Self {
        Self {
            user: person.user,
            client: person.client,
            connection: person.connection.map(Bytes::from),
            channel: person.channel.map(Bytes::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_hub::ClientInfo;

    use super::{Ask, Body, Message, Person, Whom};

    #[test]
    fn what_one_node_says_another_understands() {
        let ask = Ask::Presence {
            channel: "news".to_owned(),
            bytes_max: 1_000,
        };
        let said = Message {
            from: "a".to_owned(),
            body: Body::Request {
                request: 7,
                to: None,
                ask,
            },
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
            user: "42".to_owned(),
            client: "c".to_owned(),
            connection: Some("{\"name\":\"Ada\"}".into()),
            channel: None,
        };
        assert_eq!(ClientInfo::from(Person::from(&info)), info);
    }

    #[test]
    fn a_client_or_all_of_a_user_are_meant() {
        let mut whom = Whom {
            user: "42".to_owned(),
            ..Whom::default()
        };
        assert!(whom.matches("42", "a"));
        assert!(!whom.matches("7", "a"));
        whom.except = vec!["a".to_owned()];
        assert!(!whom.matches("42", "a"));
        let whom = Whom {
            client: "b".to_owned(),
            ..Whom::default()
        };
        assert!(whom.matches("42", "b"));
        assert!(!whom.matches("42", "a"));
    }
}
