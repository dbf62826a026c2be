//! The parameters that the opening handshake has negotiated (RFC 7692 §7.1).

use core::fmt;

/// The negotiated parameters, from the point of view of one end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "a connection has two directions")]
pub struct Agreement {
    /// The parameters of our messages.
    pub sending: Context,
    /// The parameters of the peer's messages.
    pub receiving: Context,
}

/// The parameters of one direction: how far back its messages may refer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "RFC 7692 §7.1 has these two parameters"
)]
pub struct Context {
    /// The size of the window: 2^`window_bits` bytes, 8 to 15.
    pub window_bits: u8,
    /// True if messages may refer back to earlier messages.
    pub takeover: bool,
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sending, receiving } = self;
        write!(f, "sending with {sending}, receiving with {receiving}")
    }
}

impl fmt::Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let takeover = if self.takeover { "" } else { "no " };
        write!(f, "{} bits and {takeover}takeover", self.window_bits)
    }
}
