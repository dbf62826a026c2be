//! The protocol of Pusher, version 7: a WebSocket message is an event, in JSON
//! (`docs/gateway/protocols.md`).
//!
//! | module | responsibility |
//! | --- | --- |
//! | `codes` | the close codes of Pusher |
//! | `event` | publications as events |
//! | `message` | the other messages to clients |
//! | `opening` | what the URL says |
//! | `request` | the messages of clients |
//! | `wire` | writes events |

mod codes;
mod event;
mod message;
mod opening;
mod request;
mod wire;

use super::dialect::{
    Commands, ConnectingRequest, Dialect, GapNotice, Protocol, SessionKind, Switch, Transport,
    WEBSOCKET, WebSocketTransport,
};
pub(crate) use codes::{CLIENT_EVENT_REJECTED, CONNECTIONS, TERMINATED};
pub(crate) use event::{EVENT_BYTES_MAX, is_reserved};

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&EVENTS],
    switch: Switch {
        key: "protocols.pusher",
        is_on: |protocols| protocols.pusher,
    },
    emulation: None,
    polling: None,
};

/// Each publication is an event, in a text frame.
pub(crate) static EVENTS: Dialect = Dialect {
    name: ("pusher", WEBSOCKET),
    path: "/app/{app_key}",
    accepts: |_| true,
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: None,
        farewell: codes::farewell,
        has_exceptions: true,
    }),
    session: SessionKind::Commands(Commands {
        read: request::decode,
        read_binary: None,
        write: message::write,
        connects: Some(ConnectingRequest {
            read: opening::read,
            client_id: Some(opening::client_id),
            admits: true,
        }),
        heartbeat: None,
        greeting: None,
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
