//! Positions in the stream of a channel.

use std::{fmt, sync::Arc};

/// Identifies one incarnation of a channel's stream. Offsets of different epochs cannot be
/// compared.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct Epoch(Arc<str>);

/// An epoch and the offset of the newest publication that was seen. Offsets start at 1.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct StreamPosition {
    /// The incarnation of the stream.
    pub epoch: Epoch,
    /// The offset of the newest publication; 0 before the first one.
    pub offset: u64,
}

impl Epoch {
    /// Copies `epoch`, which may be any short text.
    pub fn new(epoch: &str) -> Self {
        Self(epoch.into())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::Epoch;

    #[test]
    fn an_epoch_is_displayed_as_its_text() {
        let epoch = Epoch::new("f3a1");
        assert_eq!(epoch.as_str(), "f3a1");
        assert_eq!(epoch.to_string(), "f3a1");
        assert_eq!(format!("{epoch:?}"), "\"f3a1\"");
    }
}
