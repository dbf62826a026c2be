//! Channel names.

use std::{fmt, sync::Arc};

/// Maximum length of a channel name in bytes. Configuration cannot raise it.
pub const NAME_BYTES_MAX: usize = 1_024;

/// A channel name: 1 to [`NAME_BYTES_MAX`] bytes of UTF-8 without control characters or spaces.
///
/// The part before the first `:`, if there is one, is its namespace.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ChannelName(Arc<str>);

/// The reason why a string is not a valid channel name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelNameError {
    /// The name contains a space or a control character.
    #[error("channel name contains a space or control character at byte {at}")]
    Character {
        /// Its byte offset in the name.
        at: usize,
    },
    /// The name is empty.
    #[error("channel name is empty")]
    Empty,
    /// The name is longer than allowed.
    #[error("channel name has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
}

impl ChannelName {
    /// Checks `name` and copies it.
    ///
    /// # Errors
    /// Returns an error if the name is empty, is too long, or contains a space or a control
    /// character.
    pub fn new(name: &str) -> Result<Self, ChannelNameError> {
        if name.is_empty() {
            return Err(ChannelNameError::Empty);
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(ChannelNameError::TooLong {
                bytes: name.len(),
                bytes_max: NAME_BYTES_MAX,
            });
        }
        let forbidden = |char: char| char.is_control() || char.is_whitespace();
        match name.find(forbidden) {
            Some(at) => Err(ChannelNameError::Character { at }),
            None => Ok(Self(name.into())),
        }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the first `:`, or `None` if there is no `:`.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once(':').map(|(namespace, _)| namespace)
    }
}

impl std::borrow::Borrow<str> for ChannelName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ChannelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::{ChannelName, ChannelNameError, NAME_BYTES_MAX};

    #[test]
    fn a_name_has_a_namespace_if_it_has_a_colon() {
        assert_eq!(ChannelName::new("news").unwrap().namespace(), None);
        let name = ChannelName::new("ticks:AAPL:1m").unwrap();
        assert_eq!(name.namespace(), Some("ticks"));
    }

    #[test]
    fn names_are_bounded_and_printable() {
        assert_eq!(ChannelName::new(""), Err(ChannelNameError::Empty));
        let at = 1;
        for name in ["a b", "a\nb", "a\0b", "a\u{a0}b"] {
            assert_eq!(
                ChannelName::new(name),
                Err(ChannelNameError::Character { at })
            );
        }
        assert!(ChannelName::new(&"x".repeat(NAME_BYTES_MAX)).is_ok());
        let error = ChannelName::new(&"x".repeat(NAME_BYTES_MAX + 1)).unwrap_err();
        assert!(error.to_string().contains("1025"), "{error}");
        assert!(error.to_string().contains("1024"), "{error}");
    }

    #[test]
    fn a_name_is_displayed_unchanged() {
        let name = ChannelName::new("ticks:AAPL").unwrap();
        assert_eq!(name.as_str(), "ticks:AAPL");
        assert_eq!(name.to_string(), "ticks:AAPL");
        assert_eq!(format!("{name:>12}|"), "  ticks:AAPL|");
        assert_eq!(format!("{name:?}"), "\"ticks:AAPL\"");
    }
}
