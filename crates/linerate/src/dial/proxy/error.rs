//! What goes wrong with proxies.

use std::{fmt, io};

use linerate_proto::handshake::{BuildError, HandshakeError};

/// Why a text names no proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ProxyUrlError {
    /// The user or the password is too long.
    CredentialsTooLong {
        /// The length of the longer one.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// No host.
    HostMissing,
    /// No URL at all.
    Malformed(url::ParseError),
    /// Another scheme than `http`, `https` (which needs TLS), `socks5` and `socks5h`.
    Scheme,
}

/// Why there is no way through a proxy.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProxyError {
    /// The proxy does not accept the user and the password.
    CredentialsRefused,
    /// The proxy wants to know who we are in a way that we have no answer for, or we have not been
    /// told a user and a password.
    CredentialsWanted,
    /// Somebody has sent something before the server was asked for anything.
    DataUnexpected {
        /// How much of it was read.
        bytes: usize,
    },
    /// A variable of the environment names no proxy.
    Environment {
        /// Its name.
        variable: &'static str,
        /// What is wrong with its value.
        error: ProxyUrlError,
    },
    /// The proxy's answer to CONNECT is a refusal or malformed.
    Http(HandshakeError),
    /// The stream failed or ended.
    Io(io::Error),
    /// The destination can't be asked for.
    Request(BuildError),
    /// A name is too long for SOCKS5.
    NameTooLong {
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A SOCKS5 proxy refuses to connect (RFC 1928 §6).
    SocksRefused {
        /// The code of its reply.
        reply: u8,
    },
    /// The proxy does not speak SOCKS5.
    SocksMalformed,
}

impl ProxyError {
    /// Returns whether trying again may help.
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
                "user or password of {bytes} bytes, at most {bytes_max} allowed"
            ),
            Self::HostMissing => f.write_str("URL has no host"),
            Self::Malformed(error) => error.fmt(f),
            Self::Scheme => f.write_str(
                "URL of a proxy must start with http://, https://, socks5:// or socks5h://",
            ),
        }
    }
}

impl std::error::Error for ProxyUrlError {}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CredentialsRefused => f.write_str("it refuses the user and the password"),
            Self::CredentialsWanted => f.write_str("it wants to know who we are"),
            Self::DataUnexpected { bytes } => {
                write!(f, "{bytes} bytes came before the server was asked")
            }
            Self::Environment { variable, error } => write!(f, "{variable}: {error}"),
            Self::Http(HandshakeError::StatusUnexpected { status }) => {
                write!(f, "it refuses with status {status}")
            }
            Self::Http(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::NameTooLong { bytes, bytes_max } => {
                write!(f, "name of {bytes} bytes, at most {bytes_max} allowed")
            }
            Self::Request(error) => error.fmt(f),
            Self::SocksRefused { reply } => {
                write!(f, "it refuses with {reply}, {}", reply_meaning(*reply))
            }
            Self::SocksMalformed => f.write_str("its answer is none of SOCKS5"),
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

/// Says what the code of a reply means (RFC 1928 §6).
fn reply_meaning(reply: u8) -> &'static str {
    match reply {
        1 => "general failure",
        2 => "connection not allowed",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "time to live expired",
        7 => "command not supported",
        8 => "kind of address not supported",
        _ => "a code without a meaning",
    }
}
