//! Errors of WebSocket URLs.

/// Why a string is not a WebSocket URL (RFC 6455 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// It has a fragment, which a WebSocket URL must not have.
    #[error("WebSocket URL must not have a fragment")]
    Fragment,
    /// The host is neither a name nor an address.
    #[error("host in the URL is neither a name nor an IP address")]
    HostInvalid,
    /// It has no host.
    #[error("URL has no host")]
    HostMissing,
    /// The host is not ASCII, and this build does not have the feature `idna`.
    #[error("host in the URL is not ASCII; write it with xn--, or enable the feature `idna`")]
    HostNotAscii,
    /// It is not a URL.
    #[error("malformed URL")]
    Malformed,
    /// The port is greater than 65,535.
    #[error("port in the URL is greater than 65,535")]
    PortInvalid,
    /// The scheme is neither `ws` nor `wss`.
    #[error("WebSocket URL must start with ws:// or wss://")]
    Scheme,
}
