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

pub(crate) mod codes;
pub(crate) mod command;
pub(crate) mod decode;
pub(crate) mod encode;
pub(super) mod json;
pub(super) mod protobuf;
pub(crate) mod reply;

pub(crate) use codes::{ClientError, Disconnect, Unsubscribe};
pub(crate) use command::{Command, Request};
#[cfg(any(fuzzing, test))]
pub(crate) use decode::DecodeError;
#[cfg(test)]
pub(crate) use decode::Emulation;
pub(crate) use decode::{Format, Limits, decode, decode_emulation};
pub(crate) use encode::{Framing, encode};
pub(crate) use reply::{Answer, Push, Reply, ServerMessage};

/// The WebSocket subprotocol that selects Protobuf; without a subprotocol, JSON is used.
pub(crate) const PROTOBUF_SUBPROTOCOL: &str = "centrifuge-protobuf";
