//! Errors of proxies and proxy URLs.

use std::{fmt, io};

use linerate_proto::{
    handshake::{BuildError, HandshakeError},
    url::UrlError,
};

/// Why a string is not a proxy URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProxyUrlError {
    /// The user or the password is too long.
    CredentialsTooLong {
        /// The length of the longer of the two in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The scheme is not one of `http`, `https` (which requires the feature `rustls`), `socks5` and
    /// `socks5h`.
    Scheme,
    /// It is not a URL.
    Url(UrlError),
}

/// Why a connection through a proxy failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// The proxy rejected the user and the password.
    CredentialsRefused,
    /// The proxy requires authentication, but the client has no user and password, or does not
    /// support the proxy's method.
    CredentialsWanted,
    /// Bytes arrived before the client sent anything to the server.
    DataUnexpected {
        /// The number of bytes read.
        bytes: usize,
    },
    /// An environment variable does not have a valid proxy URL.
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// What is wrong with its value.
        error: ProxyUrlError,
    },
    /// The proxy refused the CONNECT request, or its response is malformed.
    Http(HandshakeError),
    /// The stream failed or ended.
    Io(io::Error),
    /// The request for the destination cannot be built.
    Request(BuildError),
    /// A host name is too long for SOCKS5.
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A SOCKS5 proxy refused to connect (RFC 1928 §6).
    SocksRefused {
        /// The reply code.
        reply: u8,
    },
    /// The proxy does not speak SOCKS5.
    SocksMalformed,
}

impl ProxyError {
    /// Returns whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::CredentialsRefused
            | Self::CredentialsWanted
            | Self::Environment { .. }
            | Self::NameTooLong { .. }
            | Self::Request(_)
            | Self::SocksMalformed => false,
            Self::DataUnexpected { .. }
            | Self::Http(_)
            | Self::Io(_)
            | Self::SocksRefused { .. } => true,
        }
    }
}

impl fmt::Display for ProxyUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CredentialsTooLong { bytes, bytes_max } => write!(
                f,
                "user or password has {bytes} bytes; the limit is {bytes_max}"
            ),
            Self::Scheme => {
                f.write_str("proxy URL must start with http://, https://, socks5:// or socks5h://")
            }
            Self::Url(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProxyUrlError {}

impl From<UrlError> for ProxyUrlError {
    fn from(error: UrlError) -> Self {
        Self::Url(error)
    }
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CredentialsRefused => f.write_str("user and password rejected by the proxy"),
            Self::CredentialsWanted => f.write_str(
                "authentication required by the proxy; check the user and password in its URL",
            ),
            Self::DataUnexpected { bytes } => {
                write!(
                    f,
                    "received {bytes} unexpected bytes after the proxy's response"
                )
            }
            Self::Environment { variable, error } => write!(f, "{variable}: {error}"),
            Self::Http(HandshakeError::StatusUnexpected { status }) => {
                write!(f, "request refused with status {status}")
            }
            Self::Http(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::NameTooLong { bytes, bytes_max } => {
                write!(
                    f,
                    "host name has {bytes} bytes; SOCKS5 allows at most {bytes_max}"
                )
            }
            Self::Request(error) => error.fmt(f),
            Self::SocksRefused { reply } => {
                write!(
                    f,
                    "request refused with SOCKS5 code {reply} ({})",
                    reply_meaning(*reply)
                )
            }
            Self::SocksMalformed => f.write_str("response is not SOCKS5"),
        }
    }
}

impl std::error::Error for ProxyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Environment { error, .. } => Some(error),
            Self::Http(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::Request(error) => Some(error),
            Self::CredentialsRefused
            | Self::CredentialsWanted
            | Self::DataUnexpected { .. }
            | Self::NameTooLong { .. }
            | Self::SocksRefused { .. }
            | Self::SocksMalformed => None,
        }
    }
}

impl From<HandshakeError> for ProxyError {
    fn from(error: HandshakeError) -> Self {
        match error {
            HandshakeError::StatusUnexpected { status: 407 } => Self::CredentialsWanted,
            error => Self::Http(error),
        }
    }
}

impl From<io::Error> for ProxyError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<BuildError> for ProxyError {
    fn from(error: BuildError) -> Self {
        Self::Request(error)
    }
}

/// Returns the meaning of a reply code (RFC 1928 §6).
fn reply_meaning(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "connection not allowed",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "unknown code",
    }
}
