//! What a server decides about opening handshakes, and how they fail (RFC 6455 §4).

pub use linerate_proto::handshake::{
    Acceptance, BuildError, HandshakeError, HandshakeLimits, HttpVersion, Origin, OriginPolicy,
    Refusal, Scheme,
};
