//! The wire formats of the client protocols; no other module knows a wire format.
//! `docs/gateway/protocols.md` describes all of them.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `block` | encoded publications, shared by all their recipients |
//! | `centrifuge` | commands, replies and pushes of the Centrifuge protocol |
//! | `encoding` | publications for the subscribers of each protocol: the hot path |
//! | `event_stream` | what `GET /sse` sends besides publications |
//! | `native` | blocks of the native protocol |
//! | `raw` | what a raw WebSocket receives besides publications |

pub(crate) mod block;
pub(crate) mod centrifuge;
pub(crate) mod encoding;
pub(crate) mod event_stream;
pub(crate) mod native;
pub(crate) mod raw;

pub(crate) use block::{Block, Transmit};
pub(crate) use encoding::Encoding;

#[cfg(test)]
mod tests;
