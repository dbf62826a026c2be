//! The wire formats of the client protocols; no other module knows a wire format.
//! `docs/gateway/protocols.md` describes all of them.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `block` | encoded publications, shared by all their recipients |
//! | `centrifuge` | commands, replies and pushes of the Centrifuge protocol |
//! | `codes` | error, disconnect and unsubscribe codes: one table each |
//! | `command` | the commands of clients |
//! | `decode` | limits and errors that the decoders of commands share |
//! | `encoding` | publications for the subscribers of each protocol: the hot path |
//! | `event_stream` | what `GET /sse` sends besides publications |
//! | `native` | blocks of the native protocol |
//! | `raw` | what a raw WebSocket receives besides publications |
//! | `reply` | the messages to clients |

pub(crate) mod block;
pub(crate) mod centrifuge;
pub(crate) mod codes;
pub(crate) mod command;
pub(crate) mod decode;
pub(crate) mod encoding;
pub(crate) mod event_stream;
pub(crate) mod native;
pub(crate) mod raw;
pub(crate) mod reply;

pub(crate) use block::{Block, Transmit};
pub(crate) use encoding::Encoding;

#[cfg(test)]
mod tests;
