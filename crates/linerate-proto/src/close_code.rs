//! Close codes (RFC 6455 §7.4).

use core::fmt;

/// The status code of a Close frame (RFC 6455 §7.4).
///
/// Holds only codes that may be sent, which excludes 1005, 1006 and 1015 (§7.4.1).
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CloseCode(u16);

impl CloseCode {
    /// 1000: the connection has fulfilled its purpose.
    pub const NORMAL: Self = Self(1000);
    /// 1001: the endpoint is going away (a server shuts down, the user leaves a page).
    pub const GOING_AWAY: Self = Self(1001);
    /// 1002: the peer violated the protocol.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// 1003: the endpoint received a kind of data that it does not accept.
    pub const UNSUPPORTED_DATA: Self = Self(1003);
    /// 1007: the data is not consistent with its type, such as text that is not UTF-8.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// 1008: a message violates the endpoint's policy.
    pub const POLICY_VIOLATION: Self = Self(1008);
    /// 1009: a message is too big to process.
    pub const MESSAGE_TOO_BIG: Self = Self(1009);
    /// 1010: an extension that the client requires was not negotiated.
    pub const MANDATORY_EXTENSION: Self = Self(1010);
    /// 1011: the endpoint encountered an unexpected condition.
    pub const INTERNAL_ERROR: Self = Self(1011);
    /// 1012: the service is restarting (IANA registry).
    pub const SERVICE_RESTART: Self = Self(1012);
    /// 1013: try again later (IANA registry).
    pub const TRY_AGAIN_LATER: Self = Self(1013);

    /// Returns the code if it may be sent in a Close frame, `None` otherwise.
    ///
    /// The codes defined by RFC 6455 §7.4.1 and the IANA registry (1000–1003, 1007–1014) and those
    /// for libraries and applications (3000–4999, §7.4.2) are allowed.
    pub const fn new(code: u16) -> Option<Self> {
        match code {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(code)),
            _ => None,
        }
    }

    /// Returns the code as a number.
    pub const fn as_u16(self) -> u16 {
        self.0
    }
}

impl fmt::Debug for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CloseCode({})", self.0)
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a table, independently of the `match` above.
    #[test]
    fn close_codes_equal_the_registry() {
        let mut allowed = [false; 65_536];
        for code in [
            1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014,
        ] {
            allowed[code] = true;
        }
        allowed[3000..5000].fill(true);
        for code in 0..=u16::MAX {
            assert_eq!(
                CloseCode::new(code).is_some(),
                allowed[code as usize],
                "{code}"
            );
        }
    }
}
