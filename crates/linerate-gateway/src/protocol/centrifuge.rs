//! The client protocol of Centrifuge, version 2, in JSON and Protobuf.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `json`, `protobuf` | commands, replies and publications in the two formats |
//! | `stream` | the dialects on HTTP streams |
//! | `websocket` | the dialects on WebSockets |

pub(super) mod json;
pub(super) mod protobuf;
pub(crate) mod stream;
pub(crate) mod websocket;

use super::dialect::{EmulationEndpoint, Protocol, Switch};

/// The name of the protocol in JSON, which is also its WebSocket subprotocol.
const JSON: &str = "centrifuge-json";

/// The name of the protocol in Protobuf, which is also its WebSocket subprotocol.
const PROTOBUF: &str = "centrifuge-protobuf";

/// The bit of `flag` in a subscribe command for channels that are named by IDs in pushes.
const CHANNEL_COMPACTION: i64 = 1;

/// The name of the deltas that clients can ask for.
const FOSSIL: &str = "fossil";

/// Returns the ID that pushes have in place of the name of a channel, which is not 0.
pub(crate) const fn compact_id(channel_id: u32) -> u32 {
    channel_id.saturating_add(1)
}

pub(crate) static PROTOCOL: Protocol = Protocol {
    dialects: &[
        &websocket::PROTOBUF,
        &websocket::JSON,
        &stream::PROTOBUF,
        &stream::JSON,
        &stream::EVENTS,
    ],
    switch: Switch {
        key: "protocols.centrifuge",
        is_on: |protocols| protocols.centrifuge,
    },
    emulation: Some(EmulationEndpoint {
        path: "/emulation",
        read: stream::read_emulation,
    }),
    polling: None,
};
