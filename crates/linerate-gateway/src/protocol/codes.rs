//! Codes of errors, disconnects and unsubscribes, as SDKs know them.

use std::{borrow::Cow, fmt};

/// Why a command failed. The connection stays open.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ClientError {
    /// The code that SDKs check: 100–399 are reserved for the protocol, 400–1,999 for applications.
    pub code: u32,
    /// A short description for people.
    pub message: Cow<'static, str>,
    /// True if SDKs retry automatically.
    pub is_temporary: bool,
}

/// Why a connection is closed: the code and reason of the Close frame, or of the push before a
/// stream ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Disconnect {
    /// The code that SDKs check.
    pub code: u16,
    /// A short description for people.
    pub reason: Cow<'static, str>,
}

/// Why a request is refused, and what happens to the connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// The connection is closed.
    Disconnect(Disconnect),
    /// The connection stays open.
    Error(ClientError),
}

/// Why the server ended a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Unsubscribe {
    /// The code that SDKs check: from 2,500 on, they resubscribe automatically.
    pub code: u32,
    /// A short description for people.
    pub reason: Cow<'static, str>,
}

impl ClientError {
    /// An internal error occurred in the server.
    pub(crate) const INTERNAL: Self = Self::temporary(100, "internal server error");
    /// The client is not allowed to do this.
    pub(crate) const PERMISSION_DENIED: Self = Self::known(103, "permission denied");
    /// The command is unknown.
    pub(crate) const METHOD_NOT_FOUND: Self = Self::known(104, "method not found");
    /// The connection already has this subscription.
    pub(crate) const ALREADY_SUBSCRIBED: Self = Self::known(105, "already subscribed");
    /// A limit is exceeded.
    pub(crate) const LIMIT_EXCEEDED: Self = Self::known(106, "limit exceeded");
    /// The request is invalid.
    pub(crate) const BAD_REQUEST: Self = Self::known(107, "bad request");
    /// The channel does not have this feature.
    pub(crate) const NOT_AVAILABLE: Self = Self::known(108, "not available");
    /// The token has expired; SDKs get a new one.
    pub(crate) const TOKEN_EXPIRED: Self = Self::known(109, "token expired");
    /// The client sends too many commands.
    pub(crate) const TOO_MANY_REQUESTS: Self = Self::temporary(111, "too many requests");
    /// The stream no longer holds this position, or the epoch differs.
    pub(crate) const UNRECOVERABLE_POSITION: Self = Self::known(112, "unrecoverable position");
    /// The token has been revoked. SDKs stop; where they can get a new token, they are sent 109
    /// instead.
    pub(crate) const TOKEN_REVOKED: Self = Self::known(113, "token revoked");

    /// All of the above, ordered by code.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 11] = [
        Self::INTERNAL,
        Self::PERMISSION_DENIED,
        Self::METHOD_NOT_FOUND,
        Self::ALREADY_SUBSCRIBED,
        Self::LIMIT_EXCEEDED,
        Self::BAD_REQUEST,
        Self::NOT_AVAILABLE,
        Self::TOKEN_EXPIRED,
        Self::TOO_MANY_REQUESTS,
        Self::UNRECOVERABLE_POSITION,
        Self::TOKEN_REVOKED,
    ];

    /// Replaces the message, for example to name the limit that was exceeded.
    #[must_use]
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.message = Cow::Owned(message);
        self
    }

    const fn known(code: u32, message: &'static str) -> Self {
        Self {
            code,
            message: Cow::Borrowed(message),
            is_temporary: false,
        }
    }

    const fn temporary(code: u32, message: &'static str) -> Self {
        Self {
            code,
            message: Cow::Borrowed(message),
            is_temporary: true,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ClientError {}

impl From<ClientError> for Refusal {
    fn from(error: ClientError) -> Self {
        Self::Error(error)
    }
}

impl Disconnect {
    /// The maximum length of a reason in bytes: a Close frame holds no more (RFC 6455 §5.5).
    pub(crate) const REASON_BYTES_MAX: usize = 123;

    /// The node is being drained.
    pub(crate) const SHUTDOWN: Self = Self::known(3001, "shutdown");
    /// An internal error occurred in the server.
    pub(crate) const SERVER_ERROR: Self = Self::known(3004, "internal server error");
    /// The token has expired, and the client did not send a new one.
    pub(crate) const EXPIRED: Self = Self::known(3005, "connection expired");
    /// The token has been revoked. SDKs know the code: they reconnect, and are told to get a new
    /// token.
    pub(crate) const TOKEN_REVOKED: Self = Self::known(3005, "token revoked");
    /// The token of a subscription has expired, and the client did not send a new one.
    pub(crate) const SUBSCRIPTION_EXPIRED: Self = Self::known(3006, "subscription expired");
    /// The client reads more slowly than it is sent data.
    pub(crate) const SLOW: Self = Self::known(3008, "slow");
    /// The connection can no longer be written to.
    pub(crate) const WRITE_ERROR: Self = Self::known(3009, "write error");
    /// The client's position in a stream cannot be correct.
    pub(crate) const INSUFFICIENT_STATE: Self = Self::known(3010, "insufficient state");
    /// An operator requests that the client reconnect.
    pub(crate) const FORCE_RECONNECT: Self = Self::known(3011, "force reconnect");
    /// The server is short of memory, and this client uses much of it. SDKs know the code: they
    /// reconnect later.
    pub(crate) const OVERLOADED: Self = Self::known(3011, "server overloaded, try again later");
    /// A ping was not answered in time.
    pub(crate) const NO_PONG: Self = Self::known(3012, "no pong");
    /// The client keeps sending commands although it exceeds its limit.
    pub(crate) const TOO_MANY_REQUESTS: Self = Self::known(3013, "too many requests");
    /// The token is invalid.
    pub(crate) const INVALID_TOKEN: Self = Self::known(3500, "invalid token");
    /// The message is not a command, or the command is not allowed at this point.
    pub(crate) const BAD_REQUEST: Self = Self::known(3501, "bad request");
    /// The client did not send a connect command in time.
    pub(crate) const STALE: Self = Self::known(3502, "stale");
    /// An operator disconnected the client; it must not reconnect.
    pub(crate) const FORCE_NO_RECONNECT: Self = Self::known(3503, "force disconnect");
    /// There are too many connections.
    pub(crate) const CONNECTION_LIMIT: Self = Self::known(3504, "connection limit");
    /// A payload cannot be encoded in this protocol.
    pub(crate) const INAPPROPRIATE_PROTOCOL: Self = Self::known(3506, "inappropriate protocol");
    /// The client is not allowed to connect.
    pub(crate) const PERMISSION_DENIED: Self = Self::known(3507, "permission denied");
    /// The feature is not available, and the command has no reply that could say so.
    pub(crate) const NOT_AVAILABLE: Self = Self::known(3508, "not available");

    /// All of the above except those that share a code with another, ordered by code.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 18] = [
        Self::SHUTDOWN,
        Self::SERVER_ERROR,
        Self::EXPIRED,
        Self::SUBSCRIPTION_EXPIRED,
        Self::SLOW,
        Self::WRITE_ERROR,
        Self::INSUFFICIENT_STATE,
        Self::FORCE_RECONNECT,
        Self::NO_PONG,
        Self::TOO_MANY_REQUESTS,
        Self::INVALID_TOKEN,
        Self::BAD_REQUEST,
        Self::STALE,
        Self::FORCE_NO_RECONNECT,
        Self::CONNECTION_LIMIT,
        Self::INAPPROPRIATE_PROTOCOL,
        Self::PERMISSION_DENIED,
        Self::NOT_AVAILABLE,
    ];

    /// Returns the same reason with another code.
    pub(crate) fn with_code(&self, code: u16) -> Self {
        Self {
            code,
            reason: self.reason.clone(),
        }
    }

    /// Replaces the reason. It is truncated to what a Close frame can hold.
    #[must_use]
    pub(crate) fn with_reason(mut self, mut reason: String) -> Self {
        let end = reason.floor_char_boundary(Self::REASON_BYTES_MAX);
        reason.truncate(end);
        self.reason = Cow::Owned(reason);
        self
    }

    /// Returns whether SDKs reconnect automatically.
    pub(crate) fn is_reconnect(&self) -> bool {
        !matches!(self.code, 3500..4000 | 4500..5000)
    }

    const fn known(code: u16, reason: &'static str) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
        }
    }
}

impl fmt::Display for Disconnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.code)
    }
}

impl Unsubscribe {
    /// The server API or an operator ended the subscription.
    pub(crate) const SERVER: Self = Self::known(2000, "server unsubscribe");
    /// Publications were missed: the SDK resubscribes and recovers from its last position.
    pub(crate) const INSUFFICIENT_STATE: Self = Self::known(2500, "insufficient state");
    /// The subscription's token has expired; the SDK gets a new one.
    pub(crate) const EXPIRED: Self = Self::known(2501, "subscription expired");
    /// The subscription's token has been revoked. SDKs know the code: they resubscribe, and are
    /// told to get a new token.
    pub(crate) const TOKEN_REVOKED: Self = Self::known(2501, "token revoked");

    /// Returns whether SDKs resubscribe automatically.
    pub(crate) const fn is_resubscribe(&self) -> bool {
        self.code >= 2500
    }

    /// All of the above except those that share a code with another, ordered by code.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 3] = [Self::SERVER, Self::INSUFFICIENT_STATE, Self::EXPIRED];

    const fn known(code: u32, reason: &'static str) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientError, Disconnect, Unsubscribe};

    #[test]
    fn tables_are_sorted_and_short() {
        assert!(ClientError::ALL.is_sorted_by(|a, b| a.code < b.code));
        assert!(Disconnect::ALL.is_sorted_by(|a, b| a.code < b.code));
        assert!(Unsubscribe::ALL.is_sorted_by(|a, b| a.code < b.code));
        let longest = Disconnect::ALL.iter().map(|one| one.reason.len()).max();
        assert!(longest <= Some(Disconnect::REASON_BYTES_MAX));
    }

    #[test]
    fn terminal_codes_ask_for_no_reconnect() {
        let code = |code| Disconnect {
            code,
            reason: "".into(),
        };
        for terminal in [3500, 3999, 4500, 4999] {
            assert!(!code(terminal).is_reconnect(), "{terminal}");
        }
        for other in [1000, 3000, 3499, 4000, 4499, 5000] {
            assert!(code(other).is_reconnect(), "{other}");
        }
    }

    #[test]
    fn reasons_fit_into_a_close_frame() {
        let cut = |reason: String| Disconnect::SLOW.with_reason(reason).reason;
        assert_eq!(cut("x".repeat(123)).len(), 123);
        assert_eq!(cut("x".repeat(124)).len(), 123);
        assert_eq!(cut("ü".repeat(62)), "ü".repeat(61));
    }
}
