//! Errors of verifying tokens and of setting up keys.

use std::io;

/// Why a token is rejected. Never contains text from the token.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum TokenError {
    /// `aud` does not contain the configured audience.
    #[error("token is for another audience")]
    Audience,
    /// The token is for another channel, or for a channel where a token for a connection is
    /// required.
    #[error("token is not for this channel")]
    Channel,
    /// The token is for another connection.
    #[error("token is not for this connection")]
    Client,
    /// `exp` is in the past.
    #[error("token has expired")]
    Expired,
    /// `iss` is not the configured issuer.
    #[error("token is from another issuer")]
    Issuer,
    /// The keys cannot be fetched at the moment.
    #[error("cannot fetch the keys for tokens: {reason}")]
    KeysUnavailable {
        /// Why the last attempt to fetch them failed.
        reason: String,
    },
    /// The token is not a JSON Web Token, or a claim has the wrong type.
    #[error("token is malformed")]
    Malformed,
    /// No key is configured for its algorithm, or the key that it names is unknown.
    #[error("no key for this token")]
    NoKey,
    /// `nbf` or `iat` is in the future.
    #[error("token is not valid yet")]
    NotYet,
    /// It is not known yet whether the token was revoked, because the node has just started.
    #[error("revoked tokens have not been read from the broker yet")]
    RevocationsUnknown,
    /// The token was revoked.
    #[error("token was revoked")]
    Revoked,
    /// The signature does not match the key.
    #[error("token has an invalid signature")]
    Signature,
    /// The token is too long.
    #[error("token has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// Length of the token, in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
    /// The token is for another user.
    #[error("token is not for this user")]
    User,
}

impl TokenError {
    /// All values that [`label`](Self::label) returns.
    pub(crate) const LABELS: [&str; 5] = [
        "expired",
        "invalid",
        "keys_unavailable",
        "revocations_unknown",
        "revoked",
    ];

    /// Returns whether the same token may be accepted later.
    pub(crate) const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::KeysUnavailable { .. } | Self::RevocationsUnknown
        )
    }

    /// Returns a value for metric labels.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::KeysUnavailable { .. } => "keys_unavailable",
            Self::RevocationsUnknown => "revocations_unknown",
            Self::Revoked => "revoked",
            _ => "invalid",
        }
    }
}

/// Why the configured keys or origins cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthSetupError {
    /// The file with the key cannot be read.
    #[error("{name}: {source}")]
    File {
        /// The key in the configuration.
        name: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The key is not valid.
    #[error("{name}: {reason}")]
    Key {
        /// The key in the configuration.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A configured origin is not valid.
    #[error(
        "server.origins: {origin:?} is neither an origin such as \"https://example.com\" nor \"*\""
    )]
    Origin {
        /// The configured text.
        origin: String,
    },
}
