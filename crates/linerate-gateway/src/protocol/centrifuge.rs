//! The client protocol of Centrifuge, version 2, in JSON and Protobuf.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `codes` | error, disconnect and unsubscribe codes: one table each |
//! | `command` | the commands of clients |
//! | `decode` | decodes bytes to commands |
//! | `encode` | encodes replies to bytes |
//! | `json`, `protobuf` | the two formats |
//! | `reply` | the messages to clients |

pub mod codes;
pub mod command;
pub mod decode;
pub mod encode;
pub(super) mod json;
pub(super) mod protobuf;
pub mod reply;

pub use codes::{ClientError, Disconnect, Unsubscribe};
pub use command::{Command, Request};
pub use decode::{DecodeError, Emulation, Format, Limits, decode, decode_emulation};
pub use encode::{Framing, encode};
pub use reply::{Answer, Push, Reply, ServerMessage};

/// The WebSocket subprotocol that selects Protobuf; without a subprotocol, JSON is used.
pub const PROTOBUF_SUBPROTOCOL: &str = "centrifuge-protobuf";
