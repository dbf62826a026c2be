//! The client protocol of Centrifuge, second version, in JSON and Protobuf.
//!
//! | room | what happens there |
//! | --- | --- |
//! | `codes` | errors, disconnects, unsubscribes: one table each |
//! | `command` | what clients say |
//! | `decode` | from bytes to commands |
//! | `encode` | from replies to bytes |
//! | `json`, `protobuf` | the two formats |
//! | `reply` | what clients hear |

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

/// The WebSocket subprotocol that asks for Protobuf; without one, it is JSON.
pub const PROTOBUF_SUBPROTOCOL: &str = "centrifuge-protobuf";
