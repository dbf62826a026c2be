//! The client protocol of Centrifuge, version 2, in JSON and Protobuf.
//!
//! | module | responsibility |
//! | --- | --- |
//! | `decode` | decodes bytes to commands |
//! | `encode` | encodes replies to bytes |
//! | `json`, `protobuf` | the two formats |

mod decode;
mod encode;
pub(super) mod json;
pub(super) mod protobuf;

pub(crate) use decode::{Format, decode, decode_emulation};
pub(crate) use encode::{Framing, encode};

/// The WebSocket subprotocol that selects Protobuf; without a subprotocol, JSON is used.
pub(crate) const PROTOBUF_SUBPROTOCOL: &str = "centrifuge-protobuf";
