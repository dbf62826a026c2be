//! The client protocols as bytes; no other room knows a wire format. `docs/PROTOCOL.md` describes them all.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `block` | encoded publications, shared by all who get them |
//! | `centrifuge` | commands, replies and pushes of the Centrifuge protocol |
//! | `encoding` | publications for the subscribers of each protocol: the hot path |
//! | `event_stream` | what `GET /sse` gets besides publications |
//! | `native` | blocks of the native protocol |
//! | `raw` | what a raw WebSocket gets besides publications |

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
