//! The identifier by which a client resumes a session.

use std::fmt;

/// The identifier of a session: 128 bits, which the caller must draw from an unpredictable source.
///
/// Anyone who knows it can read the figures, so it must be shown only to the client.
///
/// ```
/// use linerate_logview::session::SessionId;
///
/// let id = SessionId::from_bytes([0xA5; 16]);
/// let text = id.to_string();
/// assert_eq!(text, "a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5");
/// assert_eq!(SessionId::parse(&text), Some(id));
/// assert_eq!(SessionId::parse("a5"), None);
/// ```
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct SessionId(u128);

impl SessionId {
    /// Creates an identifier from 16 random bytes.
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// Parses the `Display` form, 32 lower-case hexadecimal digits. Returns `None` for anything
    /// else.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Hides the identifier, because anyone who reads it in a log could fetch the figures.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::SessionId;

    #[test]
    fn malformed_text_is_not_an_id() {
        let id = SessionId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        let text = id.to_string();
        assert_eq!(text, "000102030405060708090a0b0c0d0eff");
        assert_eq!(SessionId::parse(&text), Some(id));
        for other in [
            "",
            &text[1..],
            &text.to_uppercase(),
            &format!("+{}", &text[1..]),
            &format!("{text}0"),
        ] {
            assert_eq!(SessionId::parse(other), None, "{other}");
        }
    }

    #[test]
    fn debug_output_does_not_reveal_the_id() {
        assert!(!format!("{:?}", SessionId::from_bytes([0xAB; 16])).contains("ab"));
    }
}
