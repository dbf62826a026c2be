//! The client protocols; no other module knows a wire format. `docs/gateway/protocols.md` describes
//! all of them, and `docs/internals/adding-a-protocol.md` shows how to add one.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `centrifuge` | the protocol of Centrifuge, in JSON and Protobuf, on WebSockets and HTTP streams |
//! | `event_stream` | `GET /sse`: each publication is an event |
//! | `native` | blocks of publications, commands in JSON |
//! | `phoenix` | `/socket/websocket`: each publication is a broadcast of Phoenix Channels |
//! | `pusher` | `/app/KEY`: each publication is an event of Pusher |
//! | `raw` | `/raw`: each publication is a WebSocket message |
//! | `socketio` | `/socket.io/`: each publication is an event of Socket.IO |
//!
//! What they share:
//!
//! | module | responsibility |
//! | --- | --- |
//! | `block` | encoded publications, shared by all their recipients |
//! | `chunk` | the chunks of streaming responses |
//! | `codes` | error, disconnect and unsubscribe codes: one table each |
//! | `command` | the commands of clients |
//! | `decode` | limits and errors that the decoders of commands share |
//! | `dialect` | the parts of a client protocol: routes, sessions, encodings |
//! | `event_name` | the names of publications that are events |
//! | `event_offset` | the positions of events |
//! | `exceptions` | publications that one client does not receive |
//! | `gap` | gaps as JSON |
//! | `lockstep` | blocks that refer back to earlier blocks of their channel |
//! | `pieces` | frames of several publications |
//! | `polling` | requests of a client in place of a WebSocket |
//! | `position` | stream positions as text |
//! | `private_id` | the secrets with which clients return to their sessions |
//! | `query` | subscriptions in the URL of a request |
//! | `reply` | the messages to clients |

pub(crate) mod block;
pub(crate) mod centrifuge;
pub(crate) mod chunk;
pub(crate) mod codes;
pub(crate) mod command;
pub(crate) mod decode;
pub(crate) mod dialect;
pub(crate) mod event_name;
pub(crate) mod event_offset;
pub(crate) mod event_stream;
pub(crate) mod exceptions;
mod gap;
#[cfg(test)]
mod lines;
pub(crate) mod lockstep;
pub(crate) mod native;
pub(crate) mod phoenix;
mod pieces;
pub(crate) mod polling;
pub(crate) mod position;
pub(crate) mod private_id;
pub(crate) mod pusher;
pub(crate) mod query;
pub(crate) mod raw;
pub(crate) mod reply;
pub(crate) mod socketio;

use std::{ptr, sync::Arc};

use linerate_hub::EncodingId;

pub(crate) use block::{Block, Transmit};
use dialect::Protocol;
pub(crate) use dialect::{Dialect, Encoder};

/// The client protocols.
pub(crate) static PROTOCOLS: &[&Protocol] = &[
    &native::PROTOCOL,
    &centrifuge::PROTOCOL,
    &event_stream::PROTOCOL,
    &phoenix::PROTOCOL,
    &pusher::PROTOCOL,
    &raw::PROTOCOL,
    &socketio::PROTOCOL,
    #[cfg(test)]
    &lines::PROTOCOL,
];

/// Returns the dialects of all protocols. The index of each is its ID in the hub.
pub(crate) fn dialects() -> impl Iterator<Item = &'static Dialect> {
    PROTOCOLS
        .iter()
        .flat_map(|protocol| protocol.dialects)
        .copied()
}

/// Returns the encoders of all dialects in the form that the hub expects.
pub(crate) fn encoders() -> Vec<Arc<Encoder>> {
    dialects()
        .map(|dialect| Arc::new(dialect) as Arc<Encoder>)
        .collect()
}

/// Returns the ID of a dialect in the hub.
pub(crate) fn encoding_id(dialect: &'static Dialect) -> EncodingId {
    let index = dialects().position(|other| ptr::eq(other, dialect));
    // The hub refuses an ID that it does not know.
    EncodingId(
        index
            .and_then(|index| u8::try_from(index).ok())
            .unwrap_or(u8::MAX),
    )
}

#[cfg(test)]
mod tests;
