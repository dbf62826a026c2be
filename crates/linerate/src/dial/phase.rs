//! The phases of opening a connection.

use std::fmt;

/// A phase of opening a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Phase {
    /// Connecting to one of the server's addresses.
    Connect,
    /// The opening handshake: our request and the server's response.
    Handshake,
    /// Asking a proxy to connect to the server.
    Proxy,
    /// Resolving a host name to addresses.
    Resolve,
    /// The TLS handshake.
    Tls,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connection attempt",
            Self::Handshake => "opening handshake",
            Self::Proxy => "proxy request",
            Self::Resolve => "name resolution",
            Self::Tls => "TLS handshake",
        })
    }
}
