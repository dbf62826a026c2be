//! The client protocols as bytes; no other room knows a wire format. `docs/PROTOCOL.md` describes them all.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `centrifuge` | commands, replies and pushes of the Centrifuge protocol |
//! | `encoding` | publications for the subscribers of each protocol: the hot path |
//! | `event_stream` | what `GET /sse` gets besides publications |
//! | `frame` | WebSocket frames around what is appended |
//! | `native` | blocks of the native protocol |
//! | `raw` | what a raw WebSocket gets besides publications |

pub mod centrifuge;
pub mod encoding;
pub mod event_stream;
mod frame;
pub mod native;
pub mod raw;

pub use encoding::Encoding;

#[cfg(test)]
mod tests;
