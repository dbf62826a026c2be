//! The protocol of Socket.IO, version 5, on Engine.IO, version 4 (`docs/gateway/socketio.md`).
//!
//! | module | responsibility |
//! | --- | --- |
//! | `binary` | attachments in place of placeholders, and the reverse |
//! | `event` | publications as events |
//! | `message` | the other messages to clients |
//! | `namespace` | which channels belong to a namespace |
//! | `packet` | the packets of clients |
//! | `polling` | packets in the bodies of requests |
//! | `wire` | writes packets |

pub(crate) mod binary;
mod event;
mod message;
pub(crate) mod namespace;
mod packet;
pub(crate) mod polling;
mod wire;

use std::borrow::Cow;

use super::{
    codes::Disconnect,
    dialect::{
        Commands, Dialect, GapNotice, Opening, Protocol, SessionKind, Switch, Transport, WEBSOCKET,
        WebSocketTransport,
    },
};

pub(crate) use event::{describe, may_be_envelope};

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&EVENTS],
    switch: Switch {
        key: "protocols.socketio",
        is_on: |protocols| protocols.socketio,
    },
    emulation: None,
    polling: Some(&polling::ENDPOINT),
};

/// The path of WebSockets and of long polling.
const PATH: &str = "/socket.io/";

/// Each publication is an event: a text frame, followed by a binary frame for each attachment.
pub(crate) static EVENTS: Dialect = Dialect {
    name: ("socketio", WEBSOCKET),
    path: PATH,
    accepts,
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: None,
        farewell: Clone::clone,
        has_exceptions: true,
    }),
    session: SessionKind::Commands(Commands {
        read: packet::decode,
        read_binary: Some(packet::attachment),
        write: message::write,
        connects: None,
        heartbeat: None,
        greeting: Some(message::open),
        has_server_subscriptions: true,
        has_positions: false,
        has_deltas: false,
        has_compaction: false,
        first_in_query: None,
        first_in_body: false,
    }),
    encode: event::encode,
    gaps: GapNotice::ByName(event::append_gap),
};

/// The client has closed the connection with a packet.
pub(crate) const CLOSED: Disconnect = Disconnect {
    code: 1000,
    reason: Cow::Borrowed("closed by the client"),
};

/// Returns whether a request is for version 4 of Engine.IO on a WebSocket of its own.
fn accepts(opening: &Opening<'_>) -> bool {
    let value = |name| polling::parameter(opening, name);
    value("EIO").as_deref() == Some("4")
        && value("transport").as_deref() == Some("websocket")
        && value("sid").is_none()
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::accepts;
    use crate::protocol::dialect::Opening;

    #[test]
    fn only_version_4_of_engine_io_on_a_websocket_is_accepted() {
        let is_accepted = |query: &str| {
            accepts(&Opening {
                path: "/socket.io/",
                query,
                headers: &HeaderMap::new(),
                subprotocol: None,
            })
        };
        assert!(is_accepted("EIO=4&transport=websocket"));
        assert!(is_accepted("t=abc&transport=websocket&EIO=4"));
        for query in [
            "",
            "EIO=4",
            "transport=websocket",
            "EIO=3&transport=websocket",
            "EIO=4&transport=polling",
            "EIO=4&transport=webtransport",
            "EIO=4&transport=websocket&sid=abc",
        ] {
            assert!(!is_accepted(query), "{query}");
        }
    }
}
