//! The native protocol, subprotocol `linerate.v1`: blocks of publications, and Centrifuge's
//! commands in JSON (`docs/gateway/protocols.md`).

mod blocks;

use linerate_hub::Unencodable;

use super::{
    centrifuge::{json, websocket},
    dialect::{
        Commands, Dialect, GapNotice, Protocol, SessionKind, Switch, Transport, WEBSOCKET,
        WebSocketTransport,
    },
    reply::ServerMessage,
};
#[cfg(any(fuzzing, test))]
pub(crate) use blocks::Flags;
pub(super) use blocks::append_gap;

/// The WebSocket subprotocol.
const SUBPROTOCOL: &str = "linerate.v1";

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[&BLOCKS],
    switch: Switch {
        key: "protocols.native",
        is_on: |protocols| protocols.native,
    },
    emulation: None,
    polling: None,
};

/// Blocks in binary frames, replies in text frames.
pub(crate) static BLOCKS: Dialect = Dialect {
    name: (SUBPROTOCOL, WEBSOCKET),
    path: websocket::PATH,
    accepts: |opening| opening.subprotocol == Some(SUBPROTOCOL),
    transport: Transport::WebSocket(WebSocketTransport {
        subprotocol: Some(SUBPROTOCOL),
        farewell: Clone::clone,
        has_exceptions: false,
    }),
    session: SessionKind::Commands(Commands {
        read: json::decode,
        read_binary: None,
        write,
        connects: None,
        heartbeat: None,
        greeting: None,
        has_server_subscriptions: true,
        has_positions: true,
        has_deltas: false,
        has_compaction: false,
        first_in_query: None,
        first_in_body: false,
    }),
    encode: blocks::encode,
    gaps: GapNotice::ById(append_gap),
};

/// Payloads that are not JSON are written as `b64data`.
fn write(messages: &[ServerMessage], out: &mut Vec<u8>) -> Result<(), Unencodable> {
    websocket::append_text(messages, json::Binary::Base64, out)
}
