//! What a server decides about opening handshakes, and how they fail (RFC 6455 §4).

pub use crate::response::Response;
/// Conversions for servers such as hyper, which read the requests themselves; the example
/// `hyper_service` shows them.
#[cfg(feature = "http2")]
pub use linerate_h2::{request, response};
pub use linerate_proto::handshake::{
    Acceptance, BuildError, HandshakeError, HandshakeLimits, Headers, HttpVersion, Origin,
    OriginPolicy, Refusal, Scheme,
};
