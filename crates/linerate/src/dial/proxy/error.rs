//! Errors of proxies and proxy URLs.

use std::{fmt, io};

use linerate_proto::{
    handshake::{BuildError, HandshakeError},
    url::UrlError,
};

use crate::dial::transient::is_transient_io;

/// Why a string is not a proxy URL.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyUrlError {
    /// The user or the password is too long.
    #[error("user or password has {bytes} bytes; the limit is {bytes_max}")]
    CredentialsTooLong {
        /// The length of the longer of the two in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// The scheme is not one of `http`, `https` (which requires the feature `rustls`), `socks5` and
    /// `socks5h`.
    #[error("proxy URL must start with http://, https://, socks5:// or socks5h://")]
    Scheme,
    /// It is not a URL.
    #[error("{0}")]
    Url(UrlError),
}

/// Why a connection through a proxy failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The proxy rejected the user and the password.
    #[error("user and password rejected by the proxy")]
    CredentialsRefused,
    /// The proxy requires authentication, but the client has no user and password, or does not
    /// support the proxy's method.
    #[error("authentication required by the proxy; check the user and password in its URL")]
    CredentialsWanted,
    /// Bytes arrived before the client sent anything to the server.
    #[error("received {bytes} unexpected bytes after the proxy's response")]
    DataUnexpected {
        /// The number of bytes read.
        bytes: usize,
    },
    /// An environment variable does not have a valid proxy URL.
    #[error("{variable}: {error}")]
    Environment {
        /// The name of the variable.
        variable: &'static str,
        /// What is wrong with its value.
        error: ProxyUrlError,
    },
    /// The proxy refused the CONNECT request, or its response is malformed.
    #[error(fmt = fmt_http)]
    Http(HandshakeError),
    /// The stream failed or ended.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The request for the destination cannot be built.
    #[error(transparent)]
    Request(#[from] BuildError),
    /// A host name is too long for SOCKS5.
    #[error("host name has {bytes} bytes; SOCKS5 allows at most {bytes_max}")]
    NameTooLong {
        /// The length of the name in bytes.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A SOCKS5 proxy refused to connect (RFC 1928 §6).
    #[error("request refused with SOCKS5 code {reply} ({})", reply_meaning(*.reply))]
    SocksRefused {
        /// The reply code.
        reply: u8,
    },
    /// The proxy does not speak SOCKS5.
    #[error("response is not SOCKS5")]
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
            Self::Io(error) => is_transient_io(error),
            Self::DataUnexpected { .. } | Self::Http(_) | Self::SocksRefused { .. } => true,
        }
    }
}

impl From<UrlError> for ProxyUrlError {
    fn from(error: UrlError) -> Self {
        Self::Url(error)
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

/// Writes an error of the CONNECT request, which is not an opening handshake of a WebSocket.
fn fmt_http(error: &HandshakeError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match error {
        HandshakeError::StatusUnexpected { status } => {
            write!(f, "request refused with status {status}")
        }
        error => write!(f, "{error}"),
    }
}
