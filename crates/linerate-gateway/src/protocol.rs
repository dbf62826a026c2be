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

pub mod block;
pub mod centrifuge;
pub mod encoding;
pub mod event_stream;
pub mod native;
pub mod raw;

pub use block::{Block, Transmit};
pub use encoding::Encoding;

#[cfg(test)]
mod tests;
