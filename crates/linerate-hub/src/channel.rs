//! Names of channels.

use std::{fmt, sync::Arc};

/// The most bytes that the name of a channel may have, whatever is configured.
pub const NAME_BYTES_MAX: usize = 1_024;

/// The name of a channel: 1 to [`NAME_BYTES_MAX`] bytes of UTF-8 without control characters or spaces.
///
/// What stands before the first `:` is its namespace, if there is a `:` at all.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ChannelName(Arc<str>);

/// Why a text is not the name of a channel.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelNameError {
    /// A space or a control character.
    #[error("name of a channel must not hold spaces or control characters (byte {at})")]
    Character {
        /// Where it stands, in bytes.
        at: usize,
    },
    /// No byte at all.
    #[error("name of a channel must not be empty")]
    Empty,
    /// More bytes than allowed.
    #[error("name of a channel has {bytes} bytes; at most {bytes_max} are allowed")]
    TooLong {
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        bytes_max: usize,
    },
}

impl ChannelName {
    /// Checks `name` and takes a copy of it.
    ///
    /// # Errors
    /// The name is empty, too long, or holds a space or a control character.
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

    /// Returns what stands before the first `:`.
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
    fn a_name_is_shown_as_it_is() {
        let name = ChannelName::new("ticks:AAPL").unwrap();
        assert_eq!(name.as_str(), "ticks:AAPL");
        assert_eq!(name.to_string(), "ticks:AAPL");
        assert_eq!(format!("{name:>12}|"), "  ticks:AAPL|");
        assert_eq!(format!("{name:?}"), "\"ticks:AAPL\"");
    }
}
