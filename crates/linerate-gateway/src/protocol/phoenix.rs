//! The protocol of Phoenix Channels, serializer 2.0.0 (`docs/gateway/phoenix.md`).
//!
//! | module | responsibility |
//! | --- | --- |
//! | `binary` | messages in binary frames |
//! | `broadcast` | publications as broadcasts |
//! | `codes` | close codes |
//! | `message` | the other messages to clients |
//! | `opening` | what the request for the connection says |
//! | `polling` | requests of clients that poll |
//! | `presence` | who is in a topic |
//! | `request` | the messages of clients |
//! | `text` | binary messages as JSON |

mod binary;
mod broadcast;
mod codes;
mod message;
mod opening;
pub(crate) mod polling;
mod presence;
mod request;
mod text;

use super::dialect::{
    Commands, ConnectingRequest, Dialect, GapNotice, Protocol, SessionKind, Switch, Transport,
    WEBSOCKET, WebSocketTransport,
};
pub(crate) use broadcast::is_reserved;

/// The maximum length of a topic, in bytes: binary messages have no room for more.
pub(crate) const TOPIC_BYTES_MAX: usize = 255;

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&CHANNELS],
    switch: Switch {
        key: "protocols.phoenix",
        is_on: |protocols| protocols.phoenix,
    },
    emulation: None,
    polling: Some(&polling::ENDPOINT),
};

/// Each publication is a broadcast: in a text frame if its payload is JSON, or in a binary frame.
pub(crate) static CHANNELS: Dialect = Dialect {
    name: ("phoenix", WEBSOCKET),
    path: "/socket/websocket",
    accepts: |_| true,
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: Some("phoenix"),
        farewell: codes::farewell,
        has_exceptions: true,
    }),
    session: SessionKind::Commands(Commands {
        read: request::decode,
        read_binary: None,
        write: message::write,
        connects: Some(ConnectingRequest {
            read: opening::read,
            client_id: None,
            admits: false,
        }),
        greeting: None,
        heartbeat: Some(|config| config.phoenix.heartbeat_timeout),
        has_server_subscriptions: false,
        has_positions: false,
        has_deltas: false,
        has_compaction: false,
        first_in_query: None,
        first_in_body: false,
    }),
    encode: broadcast::encode,
    gaps: GapNotice::None,
};
