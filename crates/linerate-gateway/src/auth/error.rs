//! Why a token is not taken, and why keys can't be used.

use std::io;

/// Why a token is not taken. No text of the token is in here.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// `aud` does not name us.
    #[error("token is for another audience")]
    Audience,
    /// It is about another channel, or about a channel where one for the connection is wanted.
    #[error("token is not for this channel")]
    Channel,
    /// It is about another connection.
    #[error("token is not for this connection")]
    Client,
    /// `exp` is over.
    #[error("token has expired")]
    Expired,
    /// `iss` is not who we trust.
    #[error("token is from another issuer")]
    Issuer,
    /// The keys can't be fetched at the moment.
    #[error("keys for tokens are not available: {reason}")]
    KeysUnavailable {
        /// What fetching them ended with.
        reason: String,
    },
    /// It is no JSON Web Token, or a claim has the wrong type.
    #[error("token is malformed")]
    Malformed,
    /// No key is configured for its algorithm, or the one it names is not known.
    #[error("no key for this token")]
    NoKey,
    /// `nbf` or `iat` is in the future.
    #[error("token is not valid yet")]
    NotYet,
    /// Whether it was revoked is not known yet: the node has just started.
    #[error("revoked tokens have not been read from the broker yet")]
    RevocationsUnknown,
    /// It was revoked.
    #[error("token was revoked")]
    Revoked,
    /// The key did not sign this.
    #[error("token has a wrong signature")]
    Signature,
    /// More bytes than allowed.
    #[error("token has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        bytes_max: usize,
    },
    /// It is about another user.
    #[error("token is not for this user")]
    User,
}

impl TokenError {
    /// What [`label`](Self::label) may return.
    pub const LABELS: [&str; 5] = [
        "expired",
        "invalid",
        "keys_unavailable",
        "revocations_unknown",
        "revoked",
    ];

    /// Returns whether the same token may be taken later.
    pub const fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::KeysUnavailable { .. } | Self::RevocationsUnknown
        )
    }

    /// Returns a word for labels of metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::KeysUnavailable { .. } => "keys_unavailable",
            Self::RevocationsUnknown => "revocations_unknown",
            Self::Revoked => "revoked",
            _ => "invalid",
        }
    }
}

/// Why the configured keys can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthSetupError {
    /// The file with the key can't be read.
    #[error("{name}: {source}")]
    File {
        /// The key in the configuration.
        name: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// It is no key of its kind.
    #[error("{name}: {reason}")]
    Key {
        /// The key in the configuration.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An origin is none.
    #[error(
        "server.origins: {origin:?} is neither an origin like \"https://example.com\" nor \"*\""
    )]
    Origin {
        /// What is configured.
        origin: String,
    },
}
