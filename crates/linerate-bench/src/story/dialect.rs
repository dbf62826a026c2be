//! The messages with which clients subscribe, and those with which they answer, in each protocol.

use super::message::{channel_of, source_name};
use super::{CHANNEL, feed::Envelope};

/// The key of the app that Pusher clients name.
pub const PUSHER_KEY: &str = "story-key";

/// A protocol between a server and its clients.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Dialect {
    /// The protocol of Centrifuge, in JSON.
    CentrifugeJson,
    /// The native protocol of linerate, in blocks.
    Native,
    /// Version 7 of Pusher's protocol. It has no filters, so each source has its own channel.
    Pusher,
    /// Each publication is a separate message.
    Raw,
    /// Socket.IO, version 5 of its protocol over version 4 of Engine.IO. An event of the client
    /// makes its server subscribe it.
    SocketIo,
    /// The same protocol. Each source has its own namespace with a room that all clients are in.
    SocketIoNamespace,
}

/// How the messages of a protocol are carried.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// In the bodies of requests and responses (Engine.IO, "HTTP long-polling"), only for
    /// Socket.IO.
    Polling,
    /// In WebSocket messages.
    WebSocket,
}

/// The messages with which a client subscribes, and how it recognizes the answers.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// Text messages. Each is sent when the answer to the previous one has arrived.
    pub says: Vec<String>,
    /// Text that each answer contains.
    pub hears: Vec<&'static str>,
}

impl Dialect {
    /// Returns the name of the protocol in tables.
    pub fn name(self, transport: Transport) -> &'static str {
        match self {
            Self::SocketIo | Self::SocketIoNamespace if transport == Transport::Polling => {
                "Socket.IO, polling"
            }
            Self::CentrifugeJson => "Centrifuge JSON",
            Self::Native => "native",
            Self::Pusher => "Pusher",
            Self::Raw => "raw",
            Self::SocketIo | Self::SocketIoNamespace => "Socket.IO",
        }
    }

    /// Returns the request target for a client on a WebSocket that asks for the messages of
    /// `source`.
    pub fn path(self, source: u32, batch_ms: u32) -> String {
        match self {
            Self::CentrifugeJson | Self::Native => "/connection/websocket".into(),
            Self::Pusher => format!("/app/{PUSHER_KEY}?protocol=7"),
            // The filter is: source == "s07"
            Self::Raw => format!(
                "/raw?channel={CHANNEL}&batch_interval_ms={batch_ms}&filter=source%20%3D%3D%20%22{}%22",
                source_name(source)
            ),
            Self::SocketIo | Self::SocketIoNamespace => {
                "/socket.io/?EIO=4&transport=websocket".into()
            }
        }
    }

    /// Returns the subprotocol to request, if any.
    pub fn subprotocol(self) -> Option<&'static str> {
        (self == Self::Native).then_some("linerate.v1")
    }

    /// Returns the messages with which a client subscribes once its connection is open.
    pub fn greeting(self, source: u32, batch_ms: u32) -> Greeting {
        let source = source_name(source);
        let (says, hears) = match self {
            Self::CentrifugeJson => {
                let tags = format!("{{\"key\":\"source\",\"cmp\":\"eq\",\"val\":\"{source}\"}}");
                connected(&format!("{{\"channel\":\"{CHANNEL}\",\"tf\":{tags}}}"))
            }
            Self::Native => connected(&format!(
                "{{\"channel\":\"{CHANNEL}\",\"filter\":\"source == \\\"{source}\\\"\",\"batch_interval_ms\":{batch_ms}}}"
            )),
            Self::Pusher => {
                let channel = channel_of(&source);
                // The server speaks first, which counts as the answer to an empty message.
                let says = vec![
                    String::new(),
                    format!(
                        "{{\"event\":\"pusher:subscribe\",\"data\":{{\"channel\":\"{channel}\"}}}}"
                    ),
                ];
                (
                    says,
                    vec!["connection_established", "subscription_succeeded"],
                )
            }
            Self::Raw => (vec![], vec![]),
            Self::SocketIo => {
                // The server speaks first (`0{…}`), which counts as the answer to an empty message.
                let says = vec![
                    String::new(),
                    "40".into(),
                    format!("420[\"subscribe\",\"{source}\"]"),
                ];
                (says, vec!["0{", "40{", "430["])
            }
            Self::SocketIoNamespace => {
                let says = vec![String::new(), format!("40/{source},")];
                (says, vec!["0{", "\"sid\""])
            }
        };
        Greeting { says, hears }
    }

    /// Returns the answer to a text message that only checks whether the client is alive.
    pub fn pong(self, message: &[u8]) -> Option<&'static str> {
        match (self, message) {
            (Self::CentrifugeJson | Self::Native, b"{}") => Some("{}"),
            (Self::SocketIo | Self::SocketIoNamespace, b"2") => Some("3"),
            _ => None,
        }
    }

    /// Returns the form in which messages have to be published in Redis.
    pub fn envelope(self) -> Envelope {
        match self {
            Self::CentrifugeJson => Envelope::Centrifuge,
            Self::Native | Self::Raw | Self::SocketIo => Envelope::Plain,
            Self::Pusher => Envelope::Channel,
            Self::SocketIoNamespace => Envelope::Room,
        }
    }
}

/// Returns what a client sends to connect and then subscribe, and what the answers contain.
fn connected(subscribe: &str) -> (Vec<String>, Vec<&'static str>) {
    let says = vec![
        "{\"id\":1,\"connect\":{}}".into(),
        format!("{{\"id\":2,\"subscribe\":{subscribe}}}"),
    ];
    (says, vec!["\"connect\"", "\"subscribe\""])
}
