//! What clients say to be subscribed, and what they answer, in each protocol.

use super::message::source_name;
use super::{CHANNEL, feed::Envelope};

/// A protocol between a server and its clients.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dialect {
    /// Centrifuge's protocol, JSON.
    CentrifugeJson,
    /// Our native blocks.
    Native,
    /// Each publication as a message of its own.
    Raw,
    /// Socket.IO, protocol 5 over Engine.IO 4.
    SocketIo,
}

/// What is said first, and what the answer holds that means the client is subscribed.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// Text messages; each but the first is sent when the answer to the one before has come.
    pub says: Vec<String>,
    /// A part of each answer.
    pub hears: Vec<&'static str>,
}

impl Dialect {
    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::CentrifugeJson => "Centrifuge JSON",
            Self::Native => "native",
            Self::Raw => "raw",
            Self::SocketIo => "Socket.IO",
        }
    }

    /// Returns the target of the opening request of a client that asks for the messages of `source`.
    pub fn path(self, source: u32, batch_ms: u32) -> String {
        match self {
            Self::CentrifugeJson | Self::Native => "/connection/websocket".into(),
            // source == "s07"
            Self::Raw => format!(
                "/raw?channel={CHANNEL}&batch_interval_ms={batch_ms}&filter=source%20%3D%3D%20%22{}%22",
                source_name(source)
            ),
            Self::SocketIo => "/socket.io/?EIO=4&transport=websocket".into(),
        }
    }

    /// Returns the subprotocol to ask for.
    pub fn subprotocol(self) -> Option<&'static str> {
        (self == Self::Native).then_some("linerate.v1")
    }

    /// Returns what is said when the connection stands.
    pub fn greeting(self, source: u32, batch_ms: u32) -> Greeting {
        let source = source_name(source);
        let (says, hears) = match self {
            Self::CentrifugeJson => {
                let tags = format!("{{\"key\":\"source\",\"cmp\":\"eq\",\"val\":\"{source}\"}}");
                let subscribe = format!("{{\"channel\":\"{CHANNEL}\",\"tf\":{tags}}}");
                let says = vec![
                    "{\"id\":1,\"connect\":{}}".into(),
                    format!("{{\"id\":2,\"subscribe\":{subscribe}}}"),
                ];
                (says, vec!["\"connect\"", "\"subscribe\""])
            }
            Self::Native => {
                let subscribe = format!(
                    "{{\"channel\":\"{CHANNEL}\",\"filter\":\"source == \\\"{source}\\\"\",\"batch_interval_ms\":{batch_ms}}}"
                );
                let says = vec![
                    "{\"id\":1,\"connect\":{}}".into(),
                    format!("{{\"id\":2,\"subscribe\":{subscribe}}}"),
                ];
                (says, vec!["\"connect\"", "\"subscribe\""])
            }
            Self::Raw => (vec![], vec![]),
            Self::SocketIo => {
                // The server opens the talk (`0{…}`), which is taken for the answer to nothing.
                let says = vec![
                    String::new(),
                    "40".into(),
                    format!("420[\"subscribe\",\"{source}\"]"),
                ];
                (says, vec!["0{", "40{", "430["])
            }
        };
        Greeting { says, hears }
    }

    /// Returns the answer to a text message that only asks whether the client is there.
    pub fn pong(self, message: &[u8]) -> Option<&'static str> {
        match (self, message) {
            (Self::CentrifugeJson | Self::Native, b"{}") => Some("{}"),
            (Self::SocketIo, b"2") => Some("3"),
            _ => None,
        }
    }

    /// Returns how messages have to stand in Redis.
    pub fn envelope(self) -> Envelope {
        match self {
            Self::CentrifugeJson => Envelope::Centrifuge,
            Self::Native | Self::Raw | Self::SocketIo => Envelope::Plain,
        }
    }
}
