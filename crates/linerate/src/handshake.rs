//! What a server decides about opening handshakes, and how they fail (RFC 6455 §4).

pub use crate::response::Response;
pub use linerate_proto::handshake::{
    Acceptance, BuildError, HandshakeError, HandshakeLimits, Headers, HttpVersion, Origin,
    OriginPolicy, Refusal, Scheme,
};
