//! Codes of errors, disconnects and unsubscribes, as the SDKs know them.

use std::{borrow::Cow, fmt};

/// Why a command was not done. The connection goes on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientError {
    /// The number that SDKs look at: 100–399 are of the protocol, 400–1,999 of applications.
    pub code: u32,
    /// A few words for people.
    pub message: Cow<'static, str>,
    /// Whether SDKs try again by themselves.
    pub is_temporary: bool,
}

/// Why a connection is ended, as the code and reason of the Close frame or the push before a stream ends.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Disconnect {
    /// The number that SDKs look at.
    pub code: u16,
    /// A few words for people.
    pub reason: Cow<'static, str>,
}

/// Why the server ended a subscription.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unsubscribe {
    /// The number that SDKs look at: from 2,500 on they subscribe again by themselves.
    pub code: u32,
    /// A few words for people.
    pub reason: Cow<'static, str>,
}

impl ClientError {
    /// Something went wrong in the server.
    pub const INTERNAL: Self = Self::temporary(100, "internal server error");
    /// Nobody knows who asks.
    pub const UNAUTHORIZED: Self = Self::known(101, "unauthorized");
    /// The channel's namespace is not configured.
    pub const UNKNOWN_CHANNEL: Self = Self::known(102, "unknown channel");
    /// Who asks may not.
    pub const PERMISSION_DENIED: Self = Self::known(103, "permission denied");
    /// A command that is not known here.
    pub const METHOD_NOT_FOUND: Self = Self::known(104, "method not found");
    /// The connection has this subscription.
    pub const ALREADY_SUBSCRIBED: Self = Self::known(105, "already subscribed");
    /// More than allowed.
    pub const LIMIT_EXCEEDED: Self = Self::known(106, "limit exceeded");
    /// Makes no sense.
    pub const BAD_REQUEST: Self = Self::known(107, "bad request");
    /// The channel has no such feature.
    pub const NOT_AVAILABLE: Self = Self::known(108, "not available");
    /// A token was good for too short a time; SDKs get another.
    pub const TOKEN_EXPIRED: Self = Self::known(109, "token expired");
    /// The connection is too old, no token involved.
    pub const EXPIRED: Self = Self::known(110, "expired");
    /// Too often.
    pub const TOO_MANY_REQUESTS: Self = Self::temporary(111, "too many requests");
    /// The stream does not reach back so far, or is another.
    pub const UNRECOVERABLE_POSITION: Self = Self::known(112, "unrecoverable position");
    /// A token was taken back. SDKs stop: where they can get another, they are told 109.
    pub const TOKEN_REVOKED: Self = Self::known(113, "token revoked");

    /// All of the above, by number.
    pub const ALL: [Self; 14] = [
        Self::INTERNAL,
        Self::UNAUTHORIZED,
        Self::UNKNOWN_CHANNEL,
        Self::PERMISSION_DENIED,
        Self::METHOD_NOT_FOUND,
        Self::ALREADY_SUBSCRIBED,
        Self::LIMIT_EXCEEDED,
        Self::BAD_REQUEST,
        Self::NOT_AVAILABLE,
        Self::TOKEN_EXPIRED,
        Self::EXPIRED,
        Self::TOO_MANY_REQUESTS,
        Self::UNRECOVERABLE_POSITION,
        Self::TOKEN_REVOKED,
    ];

    /// Says more than the table, as which limit was exceeded by how much.
    #[must_use]
    pub fn with_message(mut self, message: String) -> Self {
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

impl Disconnect {
    /// The most bytes that a reason may have, since a Close frame holds no more (RFC 6455 §5.5).
    pub const REASON_BYTES_MAX: usize = 123;

    /// The client went, or was cut off.
    pub const CONNECTION_CLOSED: Self = Self::known(3000, "connection closed");
    /// The node is drained.
    pub const SHUTDOWN: Self = Self::known(3001, "shutdown");
    /// Something went wrong in the server.
    pub const SERVER_ERROR: Self = Self::known(3004, "internal server error");
    /// The token's time is over and no other came.
    pub const EXPIRED: Self = Self::known(3005, "connection expired");
    /// The token was taken back. SDKs know the number: they come back, and are told to get another.
    pub const TOKEN_REVOKED: Self = Self::known(3005, "token revoked");
    /// The time of a subscription's token is over and no other came.
    pub const SUBSCRIPTION_EXPIRED: Self = Self::known(3006, "subscription expired");
    /// The client takes less than it is sent.
    pub const SLOW: Self = Self::known(3008, "slow");
    /// Nothing can be written any more.
    pub const WRITE_ERROR: Self = Self::known(3009, "write error");
    /// The client's position in a stream can't be right.
    pub const INSUFFICIENT_STATE: Self = Self::known(3010, "insufficient state");
    /// An operator wants it to come back.
    pub const FORCE_RECONNECT: Self = Self::known(3011, "force reconnect");
    /// The server is short of memory, and this client takes much of it. SDKs know the number: they come back later.
    pub const OVERLOADED: Self = Self::known(3011, "server overloaded, try again later");
    /// A ping was not answered in time.
    pub const NO_PONG: Self = Self::known(3012, "no pong");
    /// More commands than allowed, and it goes on.
    pub const TOO_MANY_REQUESTS: Self = Self::known(3013, "too many requests");
    /// The token is none.
    pub const INVALID_TOKEN: Self = Self::known(3500, "invalid token");
    /// What came is no command, or no command in its place.
    pub const BAD_REQUEST: Self = Self::known(3501, "bad request");
    /// No connect command in time.
    pub const STALE: Self = Self::known(3502, "stale");
    /// An operator does not want it to come back.
    pub const FORCE_NO_RECONNECT: Self = Self::known(3503, "force disconnect");
    /// More connections than allowed.
    pub const CONNECTION_LIMIT: Self = Self::known(3504, "connection limit");
    /// More channels than allowed.
    pub const CHANNEL_LIMIT: Self = Self::known(3505, "channel limit");
    /// A payload that this protocol can't carry.
    pub const INAPPROPRIATE_PROTOCOL: Self = Self::known(3506, "inappropriate protocol");
    /// Who connects may not.
    pub const PERMISSION_DENIED: Self = Self::known(3507, "permission denied");
    /// No such feature, where no reply could say so.
    pub const NOT_AVAILABLE: Self = Self::known(3508, "not available");
    /// Too many commands were refused.
    pub const TOO_MANY_ERRORS: Self = Self::known(3509, "too many errors");

    /// All of the above, by number.
    pub const ALL: [Self; 21] = [
        Self::CONNECTION_CLOSED,
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
        Self::CHANNEL_LIMIT,
        Self::INAPPROPRIATE_PROTOCOL,
        Self::PERMISSION_DENIED,
        Self::NOT_AVAILABLE,
        Self::TOO_MANY_ERRORS,
    ];

    /// Says more than the table. What is longer than a Close frame carries is cut.
    #[must_use]
    pub fn with_reason(mut self, mut reason: String) -> Self {
        let end = reason.floor_char_boundary(Self::REASON_BYTES_MAX);
        reason.truncate(end);
        self.reason = Cow::Owned(reason);
        self
    }

    /// Returns whether SDKs connect again by themselves.
    pub fn is_reconnect(&self) -> bool {
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
    /// By the server API or an operator.
    pub const SERVER: Self = Self::known(2000, "server unsubscribe");
    /// Publications were missed: the SDK subscribes again and recovers from the position that it has.
    pub const INSUFFICIENT_STATE: Self = Self::known(2500, "insufficient state");
    /// The subscription's token is too old; the SDK gets another.
    pub const EXPIRED: Self = Self::known(2501, "subscription expired");
    /// The subscription's token was taken back. SDKs know the number: they subscribe again, and are told to get another.
    pub const TOKEN_REVOKED: Self = Self::known(2501, "token revoked");

    /// All of the above, by number.
    pub const ALL: [Self; 3] = [Self::SERVER, Self::INSUFFICIENT_STATE, Self::EXPIRED];

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
