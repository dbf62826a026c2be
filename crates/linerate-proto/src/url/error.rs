//! Errors of WebSocket URLs.

use core::fmt;

/// Why a string is not a WebSocket URL (RFC 6455 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UrlError {
    /// It has a fragment, which a WebSocket URL must not have.
    Fragment,
    /// The host is neither a name nor an address.
    HostInvalid,
    /// It has no host.
    HostMissing,
    /// The host is not ASCII, and this build does not have the feature `idna`.
    HostNotAscii,
    /// It is not a URL.
    Malformed,
    /// The port is greater than 65,535.
    PortInvalid,
    /// The scheme is neither `ws` nor `wss`.
    Scheme,
}

impl fmt::Display for UrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fragment => "WebSocket URL must not have a fragment",
            Self::HostInvalid => "host in the URL is neither a name nor an IP address",
            Self::HostMissing => "URL has no host",
            Self::HostNotAscii => {
                "host in the URL is not ASCII; write it with xn--, or enable the feature `idna`"
            }
            Self::Malformed => "malformed URL",
            Self::PortInvalid => "port in the URL is greater than 65,535",
            Self::Scheme => "WebSocket URL must start with ws:// or wss://",
        })
    }
}

impl core::error::Error for UrlError {}
